package livejobs_test

import (
	"fmt"
	"time"

	"github.com/edgehero/dispatch/livejobs"
)

func ExampleRegistry() {
	var registry livejobs.Registry
	remove := registry.Add(livejobs.Running{ID: "job-1", Project: "site", Mem: 512, CPU: 50, At: time.UnixMilli(1777629600000)})

	jobs, more := livejobs.Fields(livejobs.List(registry.Jobs()))
	fmt.Println(jobs, more)

	remove()
	jobs, more = livejobs.Fields(livejobs.List(registry.Jobs()))
	fmt.Println(jobs, more)
	// Output:
	// [{"id":"job-1","p":"site","m":512,"c":50,"at":1777629600000}] 0
	// [] 0
}

// A row is another host's text. What does not fit is dropped and counted.
func ExampleParse() {
	list, dropped, ok := livejobs.Parse(`[{"id":"job-1","p":null,"m":512,"at":1777629600000},{"id":"rm -rf /","at":1}]`)
	if !ok {
		fmt.Println("the row can't be read")
	}
	for _, job := range list {
		fmt.Println(job.ID, job.Mem, job.At.UTC())
	}
	if more, ok := livejobs.ParseMore("3"); ok {
		fmt.Println("and", more+int64(dropped), "more")
	}
	// Output:
	// job-1 512m 2026-05-01 10:00:00 +0000 UTC
	// and 4 more
}
