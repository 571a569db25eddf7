package record_test

import (
	"fmt"
	"os"
	"time"

	"github.com/edgehero/dispatch/record"
)

func Example() {
	dir, err := os.MkdirTemp("", "records")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	store := &record.Store{Dir: dir}
	created := time.Date(2026, 5, 1, 9, 59, 0, 0, time.UTC)
	err = store.Write(record.Build(record.Run{
		JobID: "nightly-1", Attempt: 1, Outcome: record.Completed,
		StartedAt: created.Add(time.Minute), EndedAt: created.Add(3 * time.Minute),
	}))
	if err != nil {
		panic(err)
	}
	r, err := store.Read("nightly-1")
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Outcome, r.StartedAt)
	why := record.Verdict(&r, record.Question{JobID: "nightly-1", Attempt: 1, Created: created})
	fmt.Println(why == record.Settles)
	// Output:
	// completed 2026-05-01T10:00:00.000Z
	// true
}

func ExampleSummarize() {
	store := &record.Store{Dir: "testdata/v1"}
	sum, err := record.Summarize(store.All())
	fmt.Println(sum.Records, sum.Outcomes[record.Policy], sum.RunTime, sum.Tokens, err)
	// Output: 2 1 10m0s 12.5 <nil>
}

func ExampleFileName() {
	name, err := record.FileName("repeat:nightly:1790000000000")
	fmt.Println(name, err)
	// Output: repeat_nightly_1790000000000 <nil>
}

func ExampleMeaning() {
	meaning, _ := record.Meaning("job-timeout")
	fmt.Println(meaning)
	// Output: the run reached its time limit
}
