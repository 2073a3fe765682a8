package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

func parseJSON(name string, data []byte) (*node, []Problem) {
	if len(bytes.TrimSpace(data)) == 0 {
		return &node{source: name}, nil
	}
	p := jsonParser{name: name, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	root, err := p.value(0)
	if err == nil {
		if _, after := p.dec.Token(); !errors.Is(after, io.EOF) {
			err = errors.New("there is something after the end of the document")
		}
	}
	if err != nil {
		offset := p.dec.InputOffset()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = syntax.Offset
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			offset, err = int64(len(data)), errors.New("the document ends too early")
		}
		return nil, []Problem{{Source: at(name, p.line(offset)), Message: "not JSON: " + err.Error()}}
	}
	return root, nil
}

type jsonParser struct {
	name string
	data []byte
	dec  *json.Decoder
}

func (p *jsonParser) line(offset int64) int {
	offset = min(max(offset, 0), int64(len(p.data)))
	return 1 + bytes.Count(p.data[:offset], []byte("\n"))
}

func (p *jsonParser) value(depth int) (*node, error) {
	if depth > 100 {
		return nil, errors.New("more than 100 levels")
	}
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &node{source: at(p.name, p.line(p.dec.InputOffset()))}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			n.value, err = p.object(depth)
		} else {
			n.value, err = p.array(depth)
		}
		return n, err
	case json.Number:
		if i, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			n.value = i
		} else if f, err := strconv.ParseFloat(t.String(), 64); err == nil {
			n.value = f
		} else {
			return nil, fmt.Errorf("the number %s is out of range", clip(t.String()))
		}
	default:
		n.value = t // string, bool, nil
	}
	return n, nil
}

func (p *jsonParser) object(depth int) ([]member, error) {
	members := []member{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string) // the decoder accepts nothing else here
		source := at(p.name, p.line(p.dec.InputOffset()))
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		members = append(members, member{key, source, v})
	}
	_, err := p.dec.Token()
	return members, err
}

func (p *jsonParser) array(depth int) ([]*node, error) {
	list := []*node{}
	for p.dec.More() {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := p.dec.Token()
	return list, err
}
