package luaexec

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Program is a compiled script. It can be run by many goroutines at once.
type Program struct {
	Name  string
	proto *lua.FunctionProto
	// ReadOnly says that the script's first line has the flag no-writes: a write is an error.
	ReadOnly bool
}

// Compile reads a script as Redis would get it: '#!lua flags=…' first, then Lua 5.1. 'local call = redis.call' must be its only
// meaning of the name call. name is for messages.
func Compile(name, text string) (*Program, error) {
	first, body, _ := strings.Cut(text, "\n")
	flags, ok := strings.CutPrefix(first, "#!lua")
	if !ok {
		return nil, fmt.Errorf("luaexec: %s: must begin with #!lua", name)
	}
	p := &Program{Name: name}
	for f := range strings.SplitSeq(strings.TrimPrefix(strings.TrimSpace(flags), "flags="), ",") {
		switch f {
		case "no-writes":
			p.ReadOnly = true
		case "", "allow-oom":
		default:
			return nil, fmt.Errorf("luaexec: %s: flag %q is not supported: allow-oom, no-writes", name, f)
		}
	}
	// The blank line keeps line numbers as they are in the text.
	chunk, err := parse.Parse(strings.NewReader("\n"+body), name)
	if err != nil {
		return nil, fmt.Errorf("luaexec: %s: %w", name, err)
	}
	r := rewriter{}
	r.block(chunk)
	if r.err != nil {
		return nil, fmt.Errorf("luaexec: %s: %w", name, r.err)
	}
	if p.proto, err = lua.Compile(chunk, name); err != nil {
		return nil, fmt.Errorf("luaexec: %s: %w", name, err)
	}
	return p, nil
}

// rewriter turns statements call(…) into redis.send(…): a command whose result is dropped needs no reply, so that nothing has to be
// read from Redis to know it.
type rewriter struct{ err error }

var errCall = errors.New("the name call must mean redis.call: local call = redis.call")

func isRedisCall(e ast.Expr) bool {
	a, ok := e.(*ast.AttrGetExpr)
	if !ok {
		return false
	}
	o, ok := a.Object.(*ast.IdentExpr)
	k, isName := a.Key.(*ast.StringExpr)
	return ok && isName && o.Value == "redis" && k.Value == "call"
}

func (r *rewriter) block(stmts []ast.Stmt) {
	for _, s := range stmts {
		r.stmt(s)
	}
}

// names refuses another meaning of call.
func (r *rewriter) names(names []string, exprs []ast.Expr) {
	for i, n := range names {
		if n == "call" && (i >= len(exprs) || !isRedisCall(exprs[i])) {
			r.err = errCall
		}
	}
}

func (r *rewriter) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.FuncCallStmt:
		c, ok := s.Expr.(*ast.FuncCallExpr)
		if !ok {
			return
		}
		if id, ok := c.Func.(*ast.IdentExpr); ok && id.Value == "call" || c.Func != nil && isRedisCall(c.Func) {
			object, key := &ast.IdentExpr{Value: "redis"}, &ast.StringExpr{Value: "send"}
			send := &ast.AttrGetExpr{Object: object, Key: key}
			for _, e := range []ast.PositionHolder{object, key, send} {
				e.SetLine(c.Line())
				e.SetLastLine(c.LastLine())
			}
			c.Func = send
		}
		r.exprs(c)
	case *ast.AssignStmt:
		for _, l := range s.Lhs {
			if id, ok := l.(*ast.IdentExpr); ok {
				r.names([]string{id.Value}, nil)
			}
		}
		r.exprs(s.Lhs...)
		r.exprs(s.Rhs...)
	case *ast.LocalAssignStmt:
		r.names(s.Names, s.Exprs)
		r.exprs(s.Exprs...)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		r.exprs(s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		r.exprs(s.Condition)
		r.block(s.Stmts)
	case *ast.IfStmt:
		r.exprs(s.Condition)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		r.names([]string{s.Name}, nil)
		r.exprs(s.Init, s.Limit, s.Step)
		r.block(s.Stmts)
	case *ast.GenericForStmt:
		r.names(s.Names, nil)
		r.exprs(s.Exprs...)
		r.block(s.Stmts)
	case *ast.FuncDefStmt:
		if id, ok := s.Name.Func.(*ast.IdentExpr); ok {
			r.names([]string{id.Value}, nil)
		}
		r.exprs(s.Func)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs...)
	}
}

// exprs looks for functions in expressions.
func (r *rewriter) exprs(list ...ast.Expr) {
	for _, e := range list {
		switch e := e.(type) {
		case *ast.FunctionExpr:
			r.names(e.ParList.Names, nil)
			r.block(e.Stmts)
		case *ast.FuncCallExpr:
			r.exprs(e.Func, e.Receiver)
			r.exprs(e.Args...)
		case *ast.AttrGetExpr:
			r.exprs(e.Object, e.Key)
		case *ast.TableExpr:
			for _, f := range e.Fields {
				r.exprs(f.Key, f.Value)
			}
		case *ast.LogicalOpExpr:
			r.exprs(e.Lhs, e.Rhs)
		case *ast.RelationalOpExpr:
			r.exprs(e.Lhs, e.Rhs)
		case *ast.StringConcatOpExpr:
			r.exprs(e.Lhs, e.Rhs)
		case *ast.ArithmeticOpExpr:
			r.exprs(e.Lhs, e.Rhs)
		case *ast.UnaryMinusOpExpr:
			r.exprs(e.Expr)
		case *ast.UnaryNotOpExpr:
			r.exprs(e.Expr)
		case *ast.UnaryLenOpExpr:
			r.exprs(e.Expr)
		}
	}
}
