package dispatch_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
