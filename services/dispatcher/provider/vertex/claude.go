package vertex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/option"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
)

// claude adapts requests of Anthropic's API to Vertex AI: the model is in the path, the version of the
// API in the document, and a token in the place of the key.
type claude struct {
	project, location string
	tokens            *tokenSource
	header            http.Header
}

// apiVersion is the version of Anthropic's API on Vertex AI.
const apiVersion = "vertex-2023-10-16"

// messagesPath is the path that the adapter sets.
const messagesPath = "/v1/messages"

// validModel matches names that are one segment of the path.
var validModel = regexp.MustCompile(`^[a-z0-9][a-z0-9.@_-]{0,127}$`)

func (c claude) platform() anthropic.Platform {
	return anthropic.Platform{
		Options: []option.RequestOption{option.WithoutEnvironmentDefaults(), option.WithMiddleware(c.adapt)},
		Secret:  c.tokens.secret,
	}
}

// adapt adapts a request, and sends it.
func (c claude) adapt(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close() // it was read
	members := strictjson.Object(sent)
	model, _ := strictjson.String(members["model"])
	if !validModel.MatchString(model) || strings.Contains(model, "..") {
		return nil, &provider.Error{
			Code:    provider.CodeModelNotSupported,
			Message: fmt.Sprintf("model: %q is no name of a Claude model on Vertex AI; want one such as claude-sonnet-4-5@20250929", model),
		}
	}
	token, err := c.tokens.token(r.Context())
	if err != nil {
		return nil, err
	}
	delete(members, "model")
	members["anthropic_version"] = json.RawMessage(fmt.Sprintf("%q", apiVersion))
	body := strictjson.RenderPlain(members)
	base := strings.TrimSuffix(r.URL.Path, messagesPath)
	r.URL.RawPath = ""
	r.URL.Path = fmt.Sprintf("%s/v1/projects/%s/locations/%s/publishers/anthropic/models/%s:streamRawPredict",
		base, c.project, c.location, model)
	r.Header.Set("Authorization", "Bearer "+string(token))
	maps.Copy(r.Header, c.header)
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, err = r.GetBody()
	if err != nil {
		return nil, err
	}
	return next(r)
}
