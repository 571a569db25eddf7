// Supervisor is the inside half of a run as a program of its own: build it
// static (CGO_ENABLED=0) and make it an image's entrypoint, or have the worker
// mount it into images that know nothing of it. Package supervisor documents its
// flags.
package main

import (
	"os"

	"github.com/edgehero/dispatch/container/supervisor"
)

func main() { os.Exit(supervisor.Main(os.Args[1:])) }
