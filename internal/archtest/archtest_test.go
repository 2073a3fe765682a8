package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

func fail(t *testing.T, faults []string) {
	t.Helper()
	slices.Sort(faults)
	for _, f := range slices.Compact(faults) {
		t.Error(f)
	}
}

func load(t *testing.T) []Package {
	t.Helper()
	packages, err := Load(t.Context(), repository, "./...")
	if err != nil {
		t.Fatal(err)
	}
	sdk, err := Load(t.Context(), filepath.Join(repository, "sdk/go"), "./...")
	if err != nil {
		t.Fatal(err)
	}
	native, err := Load(t.Context(), filepath.Join(repository, "sdk/go/plugin"), "./...")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 10 || len(sdk) < 2 || len(native) < 2 {
		t.Fatalf("only %d, %d and %d packages found", len(packages), len(sdk), len(native))
	}
	return slices.Concat(packages, sdk, native)
}

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	fail(t, CheckImports(load(t), Rooms()))
}

func TestPackages(t *testing.T) {
	t.Parallel()
	for _, p := range load(t) {
		fail(t, CheckPackage(p))
		sources := map[string][]byte{}
		for _, name := range p.GoFiles {
			content, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(Generated(), func(end string) bool { return strings.HasSuffix(name, end) }) {
				continue
			}
			path := relative(p.ImportPath) + "/" + name
			sources[path] = content
			faults, err := CheckComments(path, content)
			if err != nil {
				t.Fatal(err)
			}
			fail(t, faults)
		}
		if slices.ContainsFunc(MayHoldState(), func(room string) bool { return within(relative(p.ImportPath), room) }) {
			continue
		}
		faults, err := CheckGlobals(sources)
		if err != nil {
			t.Fatal(err)
		}
		fail(t, faults)
	}
}

// Every file of the repository, whichever module it is in.
func TestFiles(t *testing.T) {
	t.Parallel()
	unfinished, home := regexp.MustCompile(Unfinished), regexp.MustCompile(HomePath)
	text := []string{".go", ".c", ".h", ".lua", ".sql", ".proto", ".sh", ".md", ".yaml", ".yml", ".json", ".txtar", ".txt", ""}
	files := 0
	err := filepath.WalkDir(repository, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(repository, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "tmp", "data", ".taskhost"}, name) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains(text, filepath.Ext(name)) {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		name = filepath.ToSlash(name)
		fail(t, CheckSize(name, content, FileLimits()))
		fail(t, CheckLines(name, content, unfinished))
		fail(t, CheckLines(name, content, home))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Errorf("only %d files were looked at", files)
	}
}
