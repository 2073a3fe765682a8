package meter

import "github.com/taskhost/taskhost/handlers/wasm/wasmbin"

// grown begins a vector that has more elements than r's, and copies those: the count is read from r, the rest copied.
func grown(r *wasmbin.Reader, more uint32) []byte {
	n := r.Count()
	body := wasmbin.AppendU32(make([]byte, 0, r.Len()+32), n+more)
	return append(body, r.Bytes(uint32(r.Len()))...)
}

func (w *writer) types(r *wasmbin.Reader) ([]byte, error) {
	three := []byte{0x60, 3, wasmbin.I32, wasmbin.I32, wasmbin.I32}
	out := append(grown(r, 3), 0x60, 0, 0)
	out = append(append(out, three...), 1, wasmbin.I32)
	return append(append(out, three...), 0), nil
}

func (w *writer) imports(r *wasmbin.Reader) ([]byte, error) {
	body := grown(r, 1)
	body = wasmbin.AppendName(body, TickModule)
	body = wasmbin.AppendName(body, TickName)
	return wasmbin.AppendU32(append(body, wasmbin.KindFunction), w.m.void), nil
}

func (w *writer) functions(r *wasmbin.Reader) ([]byte, error) {
	body := grown(r, uint32(len(w.m.pieces)))
	for _, p := range w.m.pieces {
		if typ := w.m.void + 1; p.whole {
			body = wasmbin.AppendU32(body, typ+1)
		} else {
			body = wasmbin.AppendU32(body, typ)
		}
	}
	return body, nil
}

// globals copies the globals, with the functions in their initial values shifted, and adds the fuel.
func (w *writer) globals(r *wasmbin.Reader) ([]byte, error) {
	n := r.Count()
	body := wasmbin.AppendU32(nil, n+1)
	for ; n > 0 && r.Err() == nil; n-- {
		body = append(body, r.Byte(), r.Byte())
		body = w.constExpr(body, r)
	}
	return append(body, wasmbin.I64, 1, wasmbin.OpI64Const, 0, wasmbin.OpEnd), nil
}

// constExpr copies a constant expression with its functions shifted.
func (w *writer) constExpr(body []byte, r *wasmbin.Reader) []byte {
	from := r.Pos()
	r.ConstExpr(func(in wasmbin.Instr) {
		body = append(body, r.Slice(from, in.IndexAt)...)
		body = wasmbin.AppendU32(body, w.m.shift(in.Index))
		from = in.IndexTo
	})
	if r.Err() != nil {
		return body
	}
	return append(body, r.Slice(from, r.Pos())...)
}

func (w *writer) exports(r *wasmbin.Reader, start *wasmbin.Section) ([]byte, error) {
	n := r.Count()
	var body []byte
	count := n
	for ; n > 0 && r.Err() == nil; n-- {
		from := r.Pos()
		r.Name()
		kind := r.Byte()
		if r.Err() != nil {
			break
		}
		body = append(body, r.Slice(from, r.Pos())...)
		index := r.U32()
		if kind == wasmbin.KindFunction {
			index = w.m.shift(index)
		}
		body = wasmbin.AppendU32(body, index)
	}
	add := func(name string, kind byte, index uint32) {
		body = append(wasmbin.AppendName(body, name), kind)
		body = wasmbin.AppendU32(body, index)
		count++
	}
	add(ExportFuel, wasmbin.KindGlobal, w.m.fuel)
	if start != nil {
		sr := wasmbin.NewReader(start.Body)
		add(ExportStart, wasmbin.KindFunction, w.m.shift(sr.U32()))
		if err := sr.Err(); err != nil {
			return nil, err
		}
	}
	for i, g := range w.m.globals {
		if g.mutable {
			add(ExportGlobal(uint32(i)), wasmbin.KindGlobal, uint32(i))
			w.result.Globals = append(w.result.Globals, uint32(i))
		}
	}
	return append(wasmbin.AppendU32(nil, count), body...), nil
}

// elements copies the element segments with their functions shifted. Bit 0 of the flags means passive or declarative,
// bit 1 a table index or (with bit 0) declarative, bit 2 expressions instead of indices.
func (w *writer) elements(r *wasmbin.Reader) ([]byte, error) {
	n := r.Count()
	body := wasmbin.AppendU32(nil, n)
	for ; n > 0 && r.Err() == nil; n-- {
		flags := r.U32()
		if flags > 7 {
			r.Fail("unknown kind of element segment")
			break
		}
		body = wasmbin.AppendU32(body, flags)
		if flags&1 == 0 {
			if flags&2 != 0 {
				body = wasmbin.AppendU32(body, r.U32())
			}
			body = w.constExpr(body, r)
		}
		if flags&3 != 0 {
			body = append(body, r.Byte())
		}
		count := r.Count()
		body = wasmbin.AppendU32(body, count)
		for ; count > 0 && r.Err() == nil; count-- {
			if flags&4 != 0 {
				body = w.constExpr(body, r)
			} else {
				body = wasmbin.AppendU32(body, w.m.shift(r.U32()))
			}
		}
	}
	return body, nil
}

func (w *writer) code(r *wasmbin.Reader) ([]byte, error) {
	r.Bytes(uint32(r.Len()))
	return w.bodies, nil
}

// codeSection makes the code section and the map.
func (w *writer) codeSection(bodies []rewritten, size int) {
	m := &Map{functions: make([]mapped, len(bodies))}
	out := wasmbin.AppendU32(make([]byte, 0, size), uint32(len(bodies)+len(w.m.pieces)))
	for i := range bodies {
		b := &bodies[i]
		out = wasmbin.AppendU32(out, uint32(len(b.body)))
		m.functions[i] = mapped{
			original: w.m.bodyAt[i], originalEnd: w.m.bodyAt[i] + uint32(len(w.m.bodies[i])),
			rewritten: uint32(len(out)), rewrittenEnd: uint32(len(out) + len(b.body)),
			steps: len(m.steps), stepsEnd: len(m.steps) + len(b.steps),
		}
		out = append(out, b.body...)
		m.steps = append(m.steps, b.steps...)
		*b = rewritten{}
	}
	for _, p := range w.m.pieces {
		body := p.body(w.m)
		out = append(wasmbin.AppendU32(out, uint32(len(body))), body...)
	}
	w.bodies, w.result.Map = out, m
}

// nameSection keeps the module and function names of a name section, shifted; nil for any other custom section, and for a
// malformed one, which the specification says to ignore. With add, the names of the added functions follow.
func (w *writer) nameSection(section []byte, add bool) []byte {
	r := wasmbin.NewReader(section)
	if string(r.Name()) != "name" {
		return nil
	}
	body := wasmbin.AppendName(nil, "name")
	added := w.m.pieces
	if !add {
		added = nil
	}
	for !r.Done() {
		id := r.Byte()
		sub := wasmbin.NewReader(r.Name())
		switch id {
		case 0:
			body = wasmbin.AppendSection(body, id, sub.Bytes(uint32(sub.Len())))
		case 1:
			n := sub.Count()
			names := wasmbin.AppendU32(nil, n+uint32(len(added)))
			for ; n > 0 && sub.Err() == nil; n-- {
				names = wasmbin.AppendU32(names, w.m.shift(sub.U32()))
				names = wasmbin.AppendName(names, string(sub.Name()))
			}
			if sub.Err() != nil {
				return nil
			}
			body = wasmbin.AppendSection(body, id, w.appendNames(names, added))
			added = nil
		}
	}
	if len(added) > 0 {
		body = wasmbin.AppendSection(body, 1, w.appendNames(wasmbin.AppendU32(nil, uint32(len(added))), added))
	}
	if r.Err() != nil {
		return nil
	}
	return body
}

func (w *writer) appendNames(names []byte, added []pieces) []byte {
	for _, p := range added {
		names = wasmbin.AppendName(wasmbin.AppendU32(names, w.m.added(p)), p.name())
	}
	return names
}
