package supervisor_test

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/edgehero/dispatch/container/supervisor"
	exitline "github.com/edgehero/dispatch/exit"
)

// A program is the supervisor of the jobs it starts when the first thing that its
// main does is this.
func ExampleMain() {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(supervisor.Main(os.Args[2:]))
	}

	// And this is a job under it: the command's exit code stays what it was, and
	// the last line of output says so.
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	output, err := exec.Command(self, "supervise", "--", "sh", "-c", "echo working; exit 3").Output()
	line := exitline.Parser{}.Parse(output)
	fmt.Println(err, *line.Code, line.BySupervisor)
	// Output: exit status 3 3 true
}
