package container_test

import (
	"fmt"
	"strings"

	"github.com/edgehero/dispatch/container"
	"github.com/edgehero/dispatch/jobsize"
)

// A Spec becomes the arguments of a client. Its environment is not among them:
// other users of the host can read those.
func ExampleSpec_Command() {
	command, err := container.Spec{
		Name: "job-1", Image: "busybox", Args: []string{"true"}, Job: "job-1", Attempt: 1,
		Size: jobsize.Size{Mem: 64, CPU: 50}, Env: map[string]string{"TOKEN": "secret"},
	}.Command(container.Dialect{CgroupV2: true})
	if err != nil {
		panic(err)
	}
	argv := strings.Join(command.Argv(), " ")
	for _, part := range []string{"--memory=64m", "--memory-swap=64m", "--network=none", "--read-only", "secret"} {
		fmt.Println(part, strings.Contains(argv, part))
	}
	bytes, ok := command.MemoryLimit()
	fmt.Println(bytes, ok)
	// Output:
	// --memory=64m true
	// --memory-swap=64m true
	// --network=none true
	// --read-only true
	// secret false
	// 67108864 true
}

// What can't be run safely is refused before anything is started.
func ExampleSpec_Command_refused() {
	_, err := container.Spec{Image: "busybox", Size: jobsize.Size{Mem: 64, CPU: 50}, User: "0"}.Command(container.Dialect{})
	fmt.Println(err)
	// Output: build the command line: spec is refused: user "0" is root or of its group, which the spec does not allow
}
