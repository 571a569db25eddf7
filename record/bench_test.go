package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func BenchmarkWrite(b *testing.B) {
	r := Build(sampleRun("j", 1))
	line, _ := r.line()
	for _, sync := range []bool{false, true} {
		b.Run("store/sync="+strconv.FormatBool(sync), func(b *testing.B) {
			s := &Store{Dir: b.TempDir(), NoSync: !sync}
			for b.Loop() {
				if err := s.Write(r); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("bare/sync="+strconv.FormatBool(sync), func(b *testing.B) {
			dir := b.TempDir()
			for b.Loop() {
				f, err := os.Create(filepath.Join(dir, "j.tmp"))
				if err != nil {
					b.Fatal(err)
				}
				f.Write(line)
				if sync {
					f.Sync()
				}
				f.Close()
				os.Rename(filepath.Join(dir, "j.tmp"), filepath.Join(dir, "j.json"))
				if sync {
					d, _ := os.Open(dir)
					d.Sync()
					d.Close()
				}
			}
		})
	}
}

// BenchmarkAll reads many records, and the same files with json.Valid alone.
func BenchmarkAll(b *testing.B) {
	n := 100_000
	if testing.Short() {
		n = 1000
	}
	s := &Store{Dir: b.TempDir(), NoSync: true}
	for i := range n {
		if err := s.Write(Build(sampleRun("j"+strconv.Itoa(i), 1))); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			for _, err := range s.All() {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("valid", func(b *testing.B) {
		for b.Loop() {
			entries, _ := os.ReadDir(s.Dir)
			for _, e := range entries {
				text, err := os.ReadFile(filepath.Join(s.Dir, e.Name()))
				if err != nil || !json.Valid(text) {
					b.Fatal(err)
				}
			}
		}
	})
}
