package plugin

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// The SDK has a copy of the protocol's messages, because it is another module. It is the same protocol: scripts/proto.sh makes both.
func TestTheSDKSpeaksTheSameProtocol(t *testing.T) {
	t.Parallel()
	ours := descriptor(t, filepath.Join("..", "..", "abi", "pluginpb", "handler.pb.go"))
	theirs := descriptor(t, filepath.Join("..", "..", "sdk", "go", "plugin", "internal", "handlerpb", "handler.pb.go"))
	ours.Name, theirs.Name = nil, nil
	if len(ours.GetMessageType()) < 10 || !proto.Equal(ours, theirs) {
		t.Error("abi/pluginpb and sdk/go/plugin/internal/handlerpb differ: run scripts/proto.sh")
	}
}

// descriptor reads what a generated file says about the file it was generated from.
func descriptor(t *testing.T, path string) *descriptorpb.FileDescriptorProto {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var raw strings.Builder
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasSuffix(spec.Names[0].Name, "_rawDesc") {
			return true
		}
		ast.Inspect(spec, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				raw.WriteString(text)
			}
			return true
		})
		return false
	})
	d := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal([]byte(raw.String()), d); err != nil || raw.Len() == 0 {
		t.Fatalf("%s: %d bytes of descriptor, %v", path, raw.Len(), err)
	}
	return d
}
