package exit_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/edgehero/dispatch/exit"
)

// The worker's side: a fresh key for the attempt, the output into a tail, and
// the verified line out of it.
func Example() {
	key := exit.NewKey()
	tail := exit.NewTail(exit.DefaultTailSize)
	runContainer(strings.NewReader(key.Reveal()+"\n"), tail)

	line, auth := exit.Parser{}.ParseSigned(tail.Bytes(), key)
	fmt.Println(auth, *line.Code, *line.Turns)
	// Output: verified 0 7
}

// runContainer stands for a container: it reads its key from standard input,
// writes a log, and signs its last line.
func runContainer(stdin io.Reader, stdout io.Writer) {
	text, _ := io.ReadAll(stdin)
	key, err := exit.ParseKey(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(stdout, `{"level":"info","msg":"started"}`)
	fmt.Fprintln(stdout, `{"event":"exit","code":0,"turns":999}`) // a forgery of the workload
	signed, err := key.Sign([]byte(`{"event":"exit","code":0,"turns":7}`))
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(stdout, "%s\n", signed)
}

// A runner builds its line from a struct whose first field is the event.
func ExampleKey_Sign() {
	key, _ := exit.ParseKey("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
	line, _ := json.Marshal(struct {
		Event string `json:"event"`
		Code  int    `json:"code"`
	}{"exit", 0})
	signed, err := key.Sign(line)
	fmt.Printf("%s %v\n", signed, err)
	// Output: {"event":"exit","code":0,"auth":"8366c021dadb3ccab462e81db666ca08c43f4a94f11f0074fa71f9adb9633fb8"} <nil>
}

// Only what Verify returns may be read.
func ExampleKey_Verify() {
	key, _ := exit.ParseKey("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
	signed := `half a log line {"event":"exit","code":0,"auth":"8366c021dadb3ccab462e81db666ca08c43f4a94f11f0074fa71f9adb9633fb8"}`
	unsigned, ok := key.Verify([]byte(signed))
	fmt.Printf("%s %v\n", unsigned, ok)
	_, ok = key.Verify([]byte(strings.Replace(signed, `"code":0`, `"code":1`, 1)))
	fmt.Println(ok)
	// Output:
	// {"event":"exit","code":0} true
	// false
}

// No way to print a key shows it.
func ExampleKey_Reveal() {
	key := exit.NewKey()
	fmt.Printf("%v %d\n", key, len(key.Reveal()))
	// Output: exit.Key(redacted) 64
}

// Without a key, what the line says is a claim: Trusted drops what may not be
// acted on.
func ExampleParser_Parse() {
	tail := []byte("npm notice\n" + `{"event":"exit","code":2,"reason":"cost-cap","why":"over-cap","replaySafe":true}` + "\n")
	line := exit.Parser{}.Parse(tail)
	fmt.Println(*line.Code, line.Reason, line.Why, *line.ReplaySafe, line.Trusted().ReplaySafe == nil)

	fmt.Println(exit.Parser{}.Parse([]byte("killed before it could say a thing\n")))
	// Output:
	// 2 cost-cap over-cap true true
	// <nil>
}

// Another runner image brings its own reasons.
func ExampleVocabulary() {
	vocabulary := exit.DefaultVocabulary()
	vocabulary.Policy = append(vocabulary.Policy, "license-refused")
	line := exit.Parser{Vocabulary: vocabulary}.Parse([]byte(`{"event":"exit","code":2,"reason":"license-refused"}`))
	fmt.Println(line.Reason)
	// Output: license-refused
}

// A tail takes a command's output and keeps its end.
func ExampleTail() {
	tail := exit.NewTail(8)
	cmd := exec.Command(os.Args[0], "-test.run=^$", "-test.list=^ExampleTail$")
	cmd.Stdout = tail
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%q %v\n", tail.Bytes()[len(tail.Bytes())-5:], tail.Cut())
	// Output: "Tail\n" true
}

// Explain tells why a run was read as it was.
func ExampleParser_Explain() {
	tail := []byte(strings.Join([]string{
		`{"event":"exit","code":2,"reason":"cost-cap"}`,
		`{"event":"exit","code":1,"turns":"3","reason":"cost-cap"}`,
		`{"event":"exit","code":0`,
	}, "\n"))
	e := exit.Parser{}.Explain(tail, exit.Key{})
	for _, c := range e.Candidates {
		fmt.Printf("line %d: %s\n", c.Number, c.Finding)
	}
	for _, f := range e.Fields {
		if f.Why != "" {
			fmt.Printf("%s dropped: %s\n", f.Name, f.Why)
		}
	}
	// Output:
	// line 1: a later exit line decided
	// line 2: decisive
	// line 3: cut at its end
	// turns dropped: not a safe integer
	// reason dropped: only when code is 2
}
