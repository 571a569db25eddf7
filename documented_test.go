package dispatch_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every package that another module can import has an example, and each of its
// exported names a comment.
func TestDocumented(t *testing.T) {
	checked := 0
	for folder, files := range packages(t) {
		p, err := doc.NewFromFiles(files.set, files.parsed, folder)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name == "main" {
			continue
		}
		checked++
		if p.Doc == "" {
			t.Errorf("%s: the package has no comment", folder)
		}
		if examples(p) == 0 {
			t.Errorf("%s: the package has no Example", folder)
		}
		for _, name := range undocumented(p) {
			t.Errorf("%s: %s has no comment", folder, name)
		}
	}
	if checked < 10 {
		t.Errorf("found %d packages, want all of the module", checked)
	}
}

// The lines of doc.go that say who imports whom are what the files import. A line
// stands for what is below those it names, too.
func TestImportMap(t *testing.T) {
	got, drawn := map[string][]string{}, map[string][]string{}
	for folder, files := range packages(t) {
		for _, file := range files.parsed {
			if strings.HasSuffix(files.set.File(file.Pos()).Name(), "_test.go") || file.Name.Name == "main" {
				continue
			}
			for _, imported := range file.Imports {
				path, _ := strconv.Unquote(imported.Path.Value)
				if path, ok := strings.CutPrefix(path, "github.com/edgehero/dispatch/"); ok && !strings.HasPrefix(path, "internal/") {
					got[folder] = append(got[folder], path)
				}
			}
		}
	}
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		from, to, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "//\t"), " -> ")
		if !ok {
			continue
		}
		for folder := range strings.SplitSeq(from, ", ") {
			drawn[folder] = append(drawn[folder], strings.Split(to, ", ")...)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(got)) {
		if want, got := below(drawn, folder), below(got, folder); !slices.Equal(want, got) {
			t.Errorf("doc.go says that %s imports %q, and its files do %q", folder, want, got)
		}
	}
	if len(drawn) != len(got) {
		t.Errorf("doc.go draws %d packages that import others, want %d", len(drawn), len(got))
	}
}

// below returns all packages that one reaches, sorted.
func below(imports map[string][]string, folder string) []string {
	var all []string
	for _, to := range imports[folder] {
		all = append(append(all, to), below(imports, to)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

type goFiles struct {
	set    *token.FileSet
	parsed []*ast.File
}

// packages returns the files of each folder that other modules can import, and of
// commands, tests included.
func packages(t *testing.T) map[string]*goFiles {
	t.Helper()
	found := map[string]*goFiles{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, notModule := os.Stat(filepath.Join(path, "go.mod"))
			hidden := len(path) > 1 && strings.HasPrefix(entry.Name(), ".")
			if entry.Name() == "internal" || entry.Name() == "testdata" || hidden || path != "." && notModule == nil {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		folder := filepath.Dir(path)
		if found[folder] == nil {
			found[folder] = &goFiles{set: token.NewFileSet()}
		}
		file, err := parser.ParseFile(found[folder].set, path, nil, parser.ParseComments)
		found[folder].parsed = append(found[folder].parsed, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// examples counts the examples of a package and of its names.
func examples(p *doc.Package) int {
	n := len(p.Examples)
	for _, f := range p.Funcs {
		n += len(f.Examples)
	}
	for _, of := range p.Types {
		n += len(of.Examples)
		for _, f := range slices.Concat(of.Funcs, of.Methods) {
			n += len(f.Examples)
		}
	}
	return n
}

// undocumented returns the exported names without a comment. A group of constants
// or variables may have one for all.
func undocumented(p *doc.Package) (names []string) {
	values, funcs := slices.Concat(p.Consts, p.Vars), p.Funcs
	for _, of := range p.Types {
		if of.Doc == "" {
			names = append(names, of.Name)
		}
		values, funcs = slices.Concat(values, of.Consts, of.Vars), slices.Concat(funcs, of.Funcs, of.Methods)
	}
	for _, f := range funcs {
		if f.Doc == "" {
			names = append(names, strings.TrimPrefix(f.Recv+"."+f.Name, "."))
		}
	}
	for _, v := range values {
		for _, spec := range v.Decl.Specs {
			spec := spec.(*ast.ValueSpec)
			if v.Doc == "" && spec.Doc == nil && spec.Comment == nil {
				names = append(names, spec.Names[0].Name)
			}
		}
	}
	return names
}
