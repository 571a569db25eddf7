package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"time"

	"github.com/edgehero/dispatch/record"
)

var reportCommand = command{
	name:    "report",
	summary: "write one HTML page about the runs: when, how long, how large, how they ended",
	example: "  worker report -since 168h -o report.html\n  worker report -json",
	run:     report,
}

//go:embed report.html.tmpl
var reportText string

// The page needs neither a network nor a script.
var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"add":     func(a, b int) int { return a + b },
	"percent": func(f float64) string { return fmt.Sprintf("%.3f%%", 100*f) },
	"took":    func(s seconds) string { return roundDuration(time.Duration(s)).String() },
}).Parse(reportText))

func report(_ context.Context, p *program, args []string) error {
	f := p.flags()
	var data string
	bindData(f, &data)
	since := f.Duration("since", 7*24*time.Hour, "how far back the page goes")
	out := f.String("o", "", "the `file` to write (default standard output)")
	asJSON := f.Bool("json", false, "write the page's numbers as JSON")
	if _, err := p.parse(f, args, 0, 0); err != nil {
		return err
	}
	if *since <= 0 {
		return usagef("flag -since is %v, want a positive duration such as 168h", *since)
	}
	if err := checkData(data); err != nil {
		return err
	}
	now := time.Now().UTC()
	store := &record.Store{Dir: logsFolder(data)}
	list := listRuns(store.All(), runFilter{since: now.Add(-*since)})
	page := newReport(list, now.Add(-*since), now)
	write := page.writeHTML
	if *asJSON {
		write = page.writeJSON
	}
	if *out == "" {
		return write(p.stdout)
	}
	return writeFile(*out, write)
}

func (r reportData) writeHTML(w io.Writer) error { return reportPage.Execute(w, r) }

func (r reportData) writeJSON(w io.Writer) error { return writeJSON(w, r) }

// writeFile makes a file, or replaces it, with what write writes.
func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return usagef("flag -o: %w", err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// roundDuration leaves a duration few digits.
func roundDuration(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
