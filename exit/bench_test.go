package exit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

func BenchmarkTailWrite(b *testing.B) {
	for _, size := range []int{128, 4 << 10, 32 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			chunk := bytes.Repeat([]byte("x"), size)
			tail := NewTail(0)
			tail.Write(chunk)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				tail.Write(chunk)
			}
		})
	}
}

// exitLine is an unsigned line of at least size bytes, filled with real blocks.
func exitLine(size int) string {
	var line strings.Builder
	line.WriteString(`{"event":"exit","code":0,"turns":14,"reason":"awaiting-input","session":{"resumed":true,"reason":"resumed"},` +
		`"tokens":{"input":183221,"output":9120,"cacheRead":140222,"total":192341,"cost":0.4821},"context":{"tokens":90211,"window":200000},` +
		`"resources":{"memPeak":734003200,"oomKills":0,"cpuUsec":91827364,"throttledUsec":120031,"throttled":14,"pidsPeak":41},` +
		`"usage":{"v":1,"piAi":"0.57.1","truncated":false,"models":[`)
	for i := 0; line.Len() < size || i == 0; i++ {
		if i > 0 {
			line.WriteByte(',')
		}
		fmt.Fprintf(&line, `{"provider":"provider","model":"model-%d","calls":14,"input":183221,"output":9120,"cacheRead":140222,"cacheWrite":0,`+
			`"cacheWrite1h":0,"reasoning":512,"total":192341,"cost":0.4821,"unpriced":0,"providerBilled":0}`, i)
	}
	line.WriteString(`]}}`)
	return line.String()
}

// fullTail is a log of 64 KiB that ends in last.
func fullTail(entry func(i int) string, last string) []byte {
	tail := NewTail(0)
	for i := range 4000 {
		fmt.Fprintln(tail, entry(i))
	}
	fmt.Fprintln(tail, last)
	return tail.Bytes()
}

func logEntry(i int) string {
	if i%5 == 0 {
		return fmt.Sprintf("  %3d passing (%dms)\tnpm notice cleaned up", i, i*17)
	}
	return fmt.Sprintf(`{"level":"info","time":"2026-05-01T10:00:%02d.%03dZ","event":"tool","tool":"bash","args":{"command":"go test ./..."},"ms":%d}`, i%60, i%1000, i*3)
}

func BenchmarkParse(b *testing.B) {
	k := NewKey()
	signed := mustSign(b, k, exitLine(1<<10))
	supervisor := mustSign(b, k, `{"event":"exit","code":137,"by":"supervisor","reason":"oom-killed","resources":{"oomKills":1}}`)
	seal := `,"auth":"` + strings.Repeat("0", 64) + `"}`
	forged := func(int) string { return `{"event":"exit","code":0,"turns":1` + seal }
	for _, bb := range []struct {
		name string
		tail []byte
	}{
		{"clean", fullTail(logEntry, signed)},
		{"none", fullTail(logEntry, "done")},
		{"supervisor", fullTail(logEntry, supervisor)},
		{"forgedLines", fullTail(forged, supervisor)},
		{"anchors", fullTail(func(int) string { return strings.Repeat(anchor, 40) + seal }, supervisor)},
		{"oneLineOfAnchors", []byte(strings.Repeat(anchor, 4300) + seal)},
		{"oneLineOfKeys", []byte(anchor + strings.Repeat(`,"a":0`, 10_000) + `,"by":"supervisor"}`)},
		{"brackets", []byte(strings.Repeat("[", 32_000) + "\n" + anchor + strings.Repeat("{", 32_000))},
	} {
		b.Run(bb.name+"/unsigned", func(b *testing.B) {
			b.SetBytes(int64(len(bb.tail)))
			b.ReportAllocs()
			for b.Loop() {
				Parser{}.Parse(bb.tail)
			}
		})
		b.Run(bb.name+"/signed", func(b *testing.B) {
			b.SetBytes(int64(len(bb.tail)))
			b.ReportAllocs()
			for b.Loop() {
				Parser{}.ParseSigned(bb.tail, k)
			}
		})
	}
}

// BenchmarkVerify stands beside the bare MAC over the same bytes: "hmac" with
// the key set up each time, "hmacReused" with one that is reset. "check" is
// what a parse does for each candidate, "verify" also copies the line.
func BenchmarkVerify(b *testing.B) {
	k := NewKey()
	for _, size := range []int{1 << 10, 16 << 10} {
		line := []byte(exitLine(size - 400))
		pad := strings.Repeat("x", size-len(line)-len(`,"pad":""`)-sealLen+1)
		line = append(line[:len(line)-1], `,"pad":"`+pad+`"}`...)
		signed := []byte(mustSign(b, k, string(line)))
		if len(signed) != size {
			b.Fatalf("the line is %d bytes, want %d", len(signed), size)
		}
		b.Run(fmt.Sprintf("%dB/verify", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, ok := k.Verify(signed); !ok {
					b.Fatal("does not verify")
				}
			}
		})
		b.Run(fmt.Sprintf("%dB/check", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				if _, ok := k.check(signed); !ok {
					b.Fatal("does not verify")
				}
			}
		})
		key := []byte(k.Reveal())
		b.Run(fmt.Sprintf("%dB/hmac", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			var sum [sha256.Size]byte
			for b.Loop() {
				h := hmac.New(sha256.New, key)
				h.Write(line)
				h.Sum(sum[:0])
			}
		})
		b.Run(fmt.Sprintf("%dB/hmacReused", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			var sum [sha256.Size]byte
			h := hmac.New(sha256.New, key)
			for b.Loop() {
				h.Reset()
				h.Write(line)
				h.Sum(sum[:0])
			}
		})
	}
}
