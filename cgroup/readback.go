package cgroup

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/edgehero/dispatch/jobsize"
)

// A Finding is one property of a container as it was read back.
type Finding struct {
	// Name is the kernel's name of the property: CapBnd or memory.max.
	Name    string
	Verdict Verdict // OK, Failed or NotReadBack
	// Got and Want are the values, written anew from what was understood. Got
	// is "" when nothing was.
	Got, Want string
}

// Readings are the values that a probe printed from inside a container, by name.
type Readings map[string]string

// ParseReadings reads the output of a probe: the lines of /proc/1/status and, in
// the same form, one line name:value for each file of the cgroup.
//
//	CapBnd:	0000000000000000
//	memory.max:67108864
//
// A name with two different values is dropped: which one holds is not known.
func ParseReadings(output []byte) Readings {
	r := Readings{}
	var torn []string
	for line := range bytes.Lines(output) {
		name, value, ok := strings.Cut(string(line), ":")
		if !ok || name == "" {
			continue
		}
		value = strings.TrimSpace(value)
		if before, twice := r[name]; twice && before != value {
			torn = append(torn, name)
		}
		r[name] = value
	}
	for _, name := range torn {
		delete(r, name)
	}
	return r
}

// Weight returns the cpu.weight that was read; ok is false without one.
func (r Readings) Weight() (weight int64, ok bool) { return digits([]byte(r["cpu.weight"])) }

// Judge holds the readings against what the limits should give, in a fixed
// order: capabilities, no-new-privileges, user, then the bounds.
func (r Readings) Judge(l Limits) []Finding {
	return []Finding{
		r.hex("CapBnd", 0),
		r.number("NoNewPrivs", 1),
		r.user(),
		r.number("pids.max", l.pids()),
		r.number("memory.max", l.Size.Mem.Bytes()),
		r.number("memory.swap.max", 0),
		r.cpuMax(l.CPUs),
		r.weight(l.shares()),
	}
}

func judge(name string, pass bool, got, want string) Finding {
	verdict := Failed
	if pass {
		verdict = OK
	}
	return Finding{Name: name, Verdict: verdict, Got: got, Want: want}
}

// number judges a file that holds one number, or "max" for no bound at all.
func (r Readings) number(name string, want int64) Finding {
	wanted := strconv.FormatInt(want, 10)
	if r[name] == "max" {
		return judge(name, false, "max", wanted)
	}
	got, ok := digits([]byte(r[name]))
	if !ok {
		return Finding{Name: name, Verdict: NotReadBack, Want: wanted}
	}
	return judge(name, got == want, strconv.FormatInt(got, 10), wanted)
}

func (r Readings) hex(name string, want uint64) Finding {
	wanted := strconv.FormatUint(want, 16)
	got, err := strconv.ParseUint(r[name], 16, 64)
	if err != nil {
		return Finding{Name: name, Verdict: NotReadBack, Want: wanted}
	}
	return judge(name, got == want, strconv.FormatUint(got, 16), wanted)
}

// user judges the real, effective, saved and file system user: none may be root.
func (r Readings) user() Finding {
	f := Finding{Name: "Uid", Verdict: NotReadBack, Want: "not 0"}
	ids := strings.Fields(r[f.Name])
	if len(ids) != 4 {
		return f
	}
	root := false
	for i, id := range ids {
		n, ok := digits([]byte(id))
		if !ok {
			return f
		}
		root = root || n == 0
		ids[i] = strconv.FormatInt(n, 10)
	}
	return judge(f.Name, !root, strings.Join(ids, " "), f.Want)
}

// cpuMax judges the ceiling; off and unknown both set none.
func (r Readings) cpuMax(ceiling jobsize.Limit) Finding {
	f := Finding{Name: "cpu.max", Verdict: NotReadBack, Want: jobsize.CPUMax(ceiling)}
	got, err := jobsize.ParseCPUMax(r[f.Name])
	if err != nil {
		return f
	}
	wanted, err := jobsize.ParseCPUMax(f.Want)
	return judge(f.Name, err == nil && got == wanted, jobsize.CPUMax(got), f.Want)
}

// weight passes under either mapping that a runtime may use. Another value is
// not failed: what a weight carries is the order between jobs.
func (r Readings) weight(shares int64) Finding {
	var wanted []string
	weights := jobsize.Weights(shares)
	for _, w := range weights {
		wanted = append(wanted, strconv.FormatInt(w, 10))
	}
	f := Finding{Name: "cpu.weight", Verdict: NotReadBack, Want: strings.Join(wanted, " or ")}
	got, ok := r.Weight()
	if !ok {
		return f
	}
	f.Got = strconv.FormatInt(got, 10)
	if slices.Contains(weights, got) {
		f.Verdict = OK
	}
	return f
}
