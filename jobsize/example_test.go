package jobsize_test

import (
	"fmt"

	"github.com/edgehero/dispatch/jobsize"
)

func ExampleResolve() {
	project := jobsize.Request{Memory: "512m"}
	env := jobsize.Request{Memory: "8g", CPUs: "0.5"}
	size, err := jobsize.Resolve(project, env)
	fmt.Println(size.Mem, size.CPU, size.Source, err)

	_, err = jobsize.Resolve(jobsize.Request{CPUs: "250m"}, env)
	fmt.Println(err)
	// Output:
	// 512m 0.5 project <nil>
	// job size from project: number of CPUs is "250m", want 0.25 to 256 CPUs as a decimal with at most two fraction digits, such as 2 or 0.5
}

// A weight read back names the runtime's mapping, for which shares can then be
// asked that weigh as the CPUs do.
func ExampleMappingOf() {
	one, eight := jobsize.Size{CPU: 100}, jobsize.Size{CPU: 800}
	fmt.Println("shares", one.Shares(), "may weigh", jobsize.Weights(one.Shares()))

	mapping := jobsize.MappingOf(one.Shares(), 100)
	fmt.Println(mapping, one.SharesFor(mapping), eight.SharesFor(mapping))
	// Output:
	// shares 1024 may weigh [39 100]
	// curved 1024 13460
}

func ExampleCeiling() {
	ceiling := jobsize.Ceiling(jobsize.Known(4), jobsize.Known(330))
	if centi, ok := ceiling.Value(); ok {
		fmt.Printf("--cpus=%v\n", jobsize.Centi(centi))
	}
	fmt.Println(jobsize.CPUMax(ceiling))
	// Output:
	// --cpus=3.3
	// 330000 100000
}

func ExampleBudget_Fits() {
	budget := jobsize.FactsBudget(jobsize.Known(8<<30), jobsize.Known(2))
	size := jobsize.Size{Mem: 4096, CPU: 100}
	if misfit, ok := budget.Fits(size, 50); !ok {
		fmt.Println(misfit.Reason)
		fmt.Println(misfit)
	}
	// Output:
	// job-size-exceeds-share
	// memory of 4g is more than the project's share, 50 % of this host's budget of 7g: ask for less or use a larger host
}
