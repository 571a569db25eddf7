package dispatch_test

import (
	"fmt"
	"time"

	"github.com/edgehero/dispatch/exit"
	"github.com/edgehero/dispatch/jobsize"
	"github.com/edgehero/dispatch/record"
)

// One attempt from its size to its record. A worker does all of this for the jobs
// of a queue; what stands for the container here is one signed line of output.
func Example() {
	size, err := jobsize.Resolve(jobsize.Request{Memory: "512m", CPUs: "0.5"}, jobsize.Request{})
	if err != nil {
		panic(err)
	}
	fmt.Printf("--memory=%v --cpu-shares=%d\n", size.Mem, size.Shares())

	key := exit.NewKey()
	output, err := key.Sign([]byte(`{"event":"exit","code":0,"turns":7}`))
	if err != nil {
		panic(err)
	}
	line, auth := exit.Parser{}.ParseSigned(append(output, '\n'), key)
	fmt.Println(auth, *line.Code)

	started := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	r := record.Build(record.Run{
		JobID: "job-1", Attempt: 1, Size: size, Line: line, Outcome: record.Completed,
		StartedAt: started, EndedAt: started.Add(time.Minute),
	})
	fmt.Println(r.Outcome, *r.Turns, r.EndedAt)
	// Output:
	// --memory=512m --cpu-shares=512
	// verified 0
	// completed 7 2026-05-01T10:01:00.000Z
}
