package httpapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
)

// docsPage shows the OpenAPI document; everything it loads comes from this server.
//
//go:embed docs.html
var docsPage []byte

// docsPolicy lets the page load its own script and style and fetch the document, nothing else: no inline script, no other
// origin.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"

//go:embed docs.js
var docsScript []byte

//go:embed docs.css
var docsStyle []byte

// docsRoutes serves the OpenAPI document, rendered once, and its page. It must be called when all operations are known.
func (s *Server) docsRoutes() error {
	doc := s.api.OpenAPI()
	components := doc.Components.Schemas.Map()
	delete(components, "ErrorModel") // huma's own error, which is never sent
	delete(components, "ErrorDetail")
	polishSchemas(components)
	asJSON, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("render the OpenAPI document: %w", err)
	}
	asYAML, err := doc.YAML()
	if err != nil {
		return fmt.Errorf("render the OpenAPI document: %w", err)
	}
	for _, f := range []struct {
		path, contentType string
		body              []byte
	}{
		{"/openapi.json", "application/openapi+json", asJSON},
		{"/openapi.yaml", "application/openapi+yaml", asYAML},
		{"/docs", "text/html; charset=utf-8", docsPage},
		{"/docs/docs.js", "text/javascript; charset=utf-8", docsScript},
		{"/docs/docs.css", "text/css; charset=utf-8", docsStyle},
	} {
		s.mux.HandleFunc("GET "+f.path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", f.contentType)
			w.Header().Set("Content-Security-Policy", docsPolicy)
			_, _ = w.Write(f.body) // a reader that is gone needs no answer
		})
	}
	return nil
}
