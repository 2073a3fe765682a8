package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// CheckSize returns a fault if a file has more lines than its limit.
func CheckSize(name string, content []byte, limits map[string]int) []string {
	if slices.ContainsFunc(Generated(), func(end string) bool { return strings.HasSuffix(name, end) }) {
		return nil
	}
	limit, longest := 0, 0
	for end, n := range limits {
		if strings.HasSuffix(name, end) && len(end) > longest {
			limit, longest = n, len(end)
		}
	}
	if lines := bytes.Count(content, []byte("\n")); limit > 0 && lines > limit {
		return []string{fmt.Sprintf("%s has %d lines, limit %d", name, lines, limit)}
	}
	return nil
}

// CheckLines returns a fault for every line that matches the pattern.
func CheckLines(name string, content []byte, pattern *regexp.Regexp) (faults []string) {
	n := 0
	for line := range bytes.Lines(content) {
		n++
		if m := pattern.Find(line); m != nil {
			faults = append(faults, fmt.Sprintf("%s:%d: %q", name, n, bytes.TrimSpace(m)))
		}
	}
	return faults
}

// CheckPackage returns a fault if the package has no documentation or a name that says nothing.
func CheckPackage(p Package) (faults []string) {
	if len(p.GoFiles) > 0 && strings.TrimSpace(p.Doc) == "" {
		faults = append(faults, relative(p.ImportPath)+" has no package documentation")
	}
	if slices.Contains(BadPackageNames(), p.Name) {
		faults = append(faults, fmt.Sprintf("%s: %q is no name for a package", relative(p.ImportPath), p.Name))
	}
	return faults
}

// CheckGlobals returns a fault for every init function and every package variable
// that the package changes or that exists to be changed (locks, atomics, pools, channels). The sources are those of
// one package, by name, without tests. Tables that are filled once in their declaration and only read are fine.
func CheckGlobals(sources map[string][]byte) (faults []string, err error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for name, content := range sources {
		f, err := parser.ParseFile(fset, name, content, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	at := func(n ast.Node) string {
		p := fset.Position(n.Pos())
		return fmt.Sprintf("%s:%d", filepath.ToSlash(p.Filename), p.Line)
	}
	globals := map[string]*ast.ValueSpec{}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					faults = append(faults, at(d)+": init function")
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok || d.Tok != token.VAR {
						continue
					}
					if isMutable(v) {
						faults = append(faults, fmt.Sprintf("%s: package variable %s exists to be changed", at(v), v.Names[0].Name))
					}
					for _, name := range v.Names {
						if name.Name != "_" {
							globals[name.Name] = v
						}
					}
				}
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			for _, target := range changed(n) {
				// An identifier without object is not declared in its file, so it may be declared in another one.
				id := root(target)
				if id == nil || globals[id.Name] == nil || (id.Obj != nil && id.Obj.Decl != globals[id.Name]) {
					continue
				}
				faults = append(faults, fmt.Sprintf("%s: package variable %s is changed", at(n), id.Name))
			}
			return true
		})
	}
	slices.Sort(faults)
	return faults, nil
}

// isMutable reports whether a variable is of a kind that is of no use unless it changes.
func isMutable(v *ast.ValueSpec) bool {
	typ := v.Type
	if len(v.Values) == 1 {
		switch x := v.Values[0].(type) {
		case *ast.CompositeLit:
			if typ == nil {
				typ = x.Type
			}
			if _, ok := typ.(*ast.MapType); ok && len(x.Elts) == 0 {
				return true
			}
		case *ast.CallExpr:
			if f, ok := x.Fun.(*ast.Ident); ok && f.Name == "make" {
				return true
			}
		}
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X // atomic.Pointer[T]
	}
	if s, ok := typ.(*ast.SelectorExpr); ok {
		pkg, _ := s.X.(*ast.Ident)
		return pkg != nil && (pkg.Name == "sync" || pkg.Name == "atomic")
	}
	return false
}

// changed returns the expressions a node assigns to or takes the address of.
func changed(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			if _, literal := n.X.(*ast.CompositeLit); !literal {
				return []ast.Expr{n.X}
			}
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear" || f.Name == "copy") && f.Obj == nil && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// root returns the variable an expression such as x.f[i] begins with.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// CheckComments returns a fault for every exported top-level name without a doc comment. A comment above a group of
// constants or variables speaks for all of the group.
func CheckComments(name string, content []byte) (faults []string, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	report := func(id *ast.Ident) {
		faults = append(faults, fmt.Sprintf("%s:%d: %s has no doc comment", name, fset.Position(id.Pos()).Line, id.Name))
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && d.Recv == nil {
				report(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						report(s.Name)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						report(s.Names[0])
					}
				}
			}
		}
	}
	return faults, nil
}
