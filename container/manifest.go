package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/edgehero/dispatch/internal/jsonval"
	"github.com/edgehero/dispatch/jobsize"
)

// maxManifest bounds a manifest, in bytes.
const maxManifest = 64 << 10

// A manifest is the JSON of a KeptRun. Instants are RFC 3339, in UTC.
type manifest struct {
	JobID   string        `json:"jobId"`
	Kind    string        `json:"kind"`
	Image   string        `json:"image"`
	Backend string        `json:"backend"`
	User    string        `json:"user"`
	Size    *manifestSize `json:"size,omitempty"` // old manifests have none
	Created time.Time     `json:"created"`
	Expires time.Time     `json:"expires"`
}

type manifestSize struct {
	MemMiB   jobsize.MiB    `json:"memMiB"`
	CPUCenti jobsize.Centi  `json:"cpuCenti"` // hundredths of a CPU
	Source   jobsize.Source `json:"source"`
}

// manifest returns the run's manifest, which readManifest reads as the same run.
func (r KeptRun) manifest() ([]byte, error) {
	for _, field := range []struct{ name, value string }{
		{"job id", r.Job}, {"kind", r.Kind}, {"image", r.Image}, {"backend", r.Backend}, {"user", r.User},
	} {
		if !plainText(field.value) {
			return nil, fmt.Errorf("%s %.80q has a control character or is not UTF-8", field.name, field.value)
		}
	}
	m := manifest{
		JobID: r.Job, Kind: r.Kind, Image: r.Image, Backend: r.Backend, User: r.User,
		Created: r.Created.UTC(), Expires: r.Expires.UTC(),
	}
	if r.Size != (jobsize.Size{}) {
		m.Size = &manifestSize{r.Size.Mem, r.Size.CPU, r.Size.Source}
	}
	switch {
	case r.Job == "":
		return nil, errors.New("it names no job")
	case r.Created.IsZero() || !r.Expires.After(r.Created):
		return nil, errors.New("it does not expire after it was created")
	case m.Size != nil && !m.Size.valid():
		return nil, fmt.Errorf("%d MiB and %d hundredths of a CPU are no size", r.Size.Mem, r.Size.CPU)
	}
	text, err := json.Marshal(m)
	if err == nil && len(text) > maxManifest {
		err = errors.New("its manifest is longer than 64 KiB")
	}
	return text, err
}

func (s *manifestSize) valid() bool {
	return s.MemMiB >= minMemory && s.CPUCenti > 0 && plainText(string(s.Source))
}

// readManifest rebuilds a run field by field. Its Size is zero where the
// manifest has none.
func readManifest(f *os.File) (KeptRun, error) {
	text, err := readAtMost(f, maxManifest)
	if err != nil {
		return KeptRun{}, err
	}
	value, err := jsonval.Parse(text)
	if err != nil {
		return KeptRun{}, fmt.Errorf("read its manifest: %w", err)
	}
	o, _ := value.Object()
	run := KeptRun{
		Job:     oneLine(o.Get("jobId")),
		Kind:    oneLine(o.Get("kind")),
		Image:   oneLine(o.Get("image")),
		Backend: oneLine(o.Get("backend")),
		User:    oneLine(o.Get("user")),
	}
	var hasCreated, hasExpires, hasSize bool
	run.Created, hasCreated = instant(o.Get("created"))
	run.Expires, hasExpires = instant(o.Get("expires"))
	run.Size, hasSize = readSize(o.Get("size"))
	if run.Job == "" || !hasCreated || !hasExpires || !hasSize {
		return KeptRun{}, errors.New("read its manifest: it is none")
	}
	return run, nil
}

// readSize reads a size; one that is absent is the zero Size. ok is false for
// what is there and no size: a run must not go on at a size it did not have.
func readSize(v jsonval.Value) (size jobsize.Size, ok bool) {
	if !v.Exists() || v.IsNull() {
		return jobsize.Size{}, true
	}
	o, _ := v.Object()
	mem, hasMem := o.Get("memMiB").Count()
	cpu, hasCPU := o.Get("cpuCenti").Count()
	s := manifestSize{jobsize.MiB(mem), jobsize.Centi(cpu), jobsize.Source(oneLine(o.Get("source")))}
	if !hasMem || !hasCPU || !s.valid() || mem > math.MaxInt64>>20 {
		return jobsize.Size{}, false
	}
	return jobsize.Size{Mem: s.MemMiB, CPU: s.CPUCenti, Source: s.Source}, true
}

// oneLine returns a text that can travel as a label and on one line, "" for any
// other value.
func oneLine(v jsonval.Value) string {
	if s := text(v); plainText(s) {
		return s
	}
	return ""
}

// readAtMost reads a file that may be at most so many bytes long.
func readAtMost(f *os.File, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("it is longer than %d KiB", most>>10)
	}
	return text, nil
}
