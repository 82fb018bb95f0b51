// Package rest is the HTTP side of the public API. It checks a request in the protocol's order,
// forwards it to the gRPC side, and converts the answer to HTTP:
//
//	size 413 → capacity 503 → rate 429 → credential 401 → scope 403 →
//	body and parameters 400 → the handler (404, 409, …)
//
// (OpenWOP host contract §2.0.)
package rest

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/internal/rpc"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// Config limits requests.
type Config struct {
	// MaxBodyBytes is limits.maxRequestBodyBytes of discovery.
	MaxBodyBytes int64
	// Patience limits how slowly callers may send and read.
	Patience Patience
}

// maxSeamBody limits the body of a test seam, which may contain an asset of 8 MiB in base64.
const maxSeamBody = 9 << 20

// maxDepth limits the nesting of a request body.
const maxDepth = 64

// Deps are the collaborators.
type Deps struct {
	// Conn is a connection to the public gRPC server.
	Conn grpc.ClientConnInterface
	Keys *auth.Keys
	// Gate admits requests.
	Gate *admission.Gate
	// Rates limits their rates.
	Rates *admission.Rates
	// CheckToken rejects what is no token of this host in a path, before the body is read.
	CheckToken func(token string) error
	Handlers
	// Clean redacts errors.
	Clean func(context.Context, error) error
	Ready func() error
	// Warnings may be nil.
	Warnings func() []string
	Clock    func() time.Time
	Logger   *slog.Logger
}

// Handlers serve the routes that are not translated to one gRPC call.
type Handlers struct {
	Events http.Handler // streams the events of a run
	Watch  http.Handler // streams changed rows of the run list
	// OpenAPI and AsyncAPI serve the descriptions of the API.
	OpenAPI, AsyncAPI http.Handler
	Assets            *Assets
	// Seams serves the test seams; nil answers 404.
	Seams http.Handler
}

// Handler is the HTTP API.
type Handler struct {
	cfg     Config
	deps    Deps
	grpc    http.Handler
	streams []stream
}

// New makes the handler.
func New(ctx context.Context, cfg Config, d Deps) (*Handler, error) {
	mux, err := newTranslator(ctx, d.Conn, d.Clean, d.Logger)
	if err != nil {
		return nil, err
	}
	streams := []stream{
		{EventsPath, openwopv1.Engine_StreamRunEvents_FullMethodName, eventsQuery, d.Events},
		{WatchPath, hostv1.Host_WatchRuns_FullMethodName, nil, d.Watch},
	}
	return &Handler{
		cfg:     cfg,
		deps:    d,
		grpc:    mux,
		streams: streams,
	}, nil
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.recovered(w)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if tp := r.Header.Get("Traceparent"); wire.ValidTraceparent(tp) {
		w.Header().Set("Traceparent", tp)
	} else {
		r.Header.Del("Traceparent") // malformed ones are ignored
	}
	err := h.serve(w, r)
	if err == nil {
		return
	}
	if _, plain := errors.AsType[refused](err); !plain {
		err = h.deps.Clean(r.Context(), err)
	}
	WriteError(w, h.deps.Logger, err)
}

// refused is an error about the host alone. It contains nothing of the request, so it skips
// redaction: rejecting a request must be cheap.
type refused struct{ error }

// Unwrap returns the error itself.
func (r refused) Unwrap() error { return r.error }

// recovered answers a request whose handler panicked.
func (h *Handler) recovered(w http.ResponseWriter) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // the server's own sentinel
		panic(p)
	}
	e, id := rpc.Internal(errors.New("panic"))
	h.deps.Logger.Error("panic in HTTP handler", "correlation_id", id, "panic", obs.Panic(p), "stack", string(debug.Stack()))
	WriteError(w, h.deps.Logger, e)
}

const (
	seamPrefix  = "/v1/host/sample/"
	seamAssets  = seamPrefix + "assets/"
	packsPrefix = "/v1/packs"
)

// AssetsPrefix is the path of assets. A token follows.
const AssetsPrefix = "/v1/assets/"

// serve routes a request. It returns the error for the caller.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	switch path := r.URL.Path; {
	case path == HealthPath, path == ReadyPath:
		return h.health(w, r)
	case path == OpenAPIPath:
		return getOnly(w, r, h.deps.OpenAPI)
	case path == AsyncAPIPath:
		return getOnly(w, r, h.deps.AsyncAPI)
	case path == packsPrefix || strings.HasPrefix(path, packsPrefix+"/"):
		// Plain text: a JSON 404 would look like a registry without the pack.
		http.Error(w, "this host has no pack registry", http.StatusNotFound)
		return nil
	case strings.HasPrefix(path, schemasPrefix) && !strings.HasPrefix(path, envelopesPrefix):
		return fileSchema(w, r, strings.TrimPrefix(path, schemasPrefix))
	case !versioned(path):
		return fault.New(fault.ValidationError, "paths of this API begin with /v1/, /schemas/ or /.well-known/openwop")
	case path == "/.well-known/openwop": // not subject to admission
		route, allowed := find(r.Method, path)
		if h.deps.Rates.LimitsDiscovery() {
			if err := h.limitRate(w, r, route, h.deps.Gate.Identify(r.Header.Get("Authorization"), admission.Host(r.RemoteAddr))); err != nil {
				return err
			}
		}
		return h.translated(w, r, route, allowed)
	}
	if n := len(r.Header["Authorization"]); n > 1 { // a proxy may have checked another one
		return fault.New(fault.Unauthenticated, "Authorization: the header is there %d times; send it once", n)
	}
	r = withNodeID(r)
	route, allowed := find(r.Method, r.URL.Path)
	from := h.deps.Gate.Identify(r.Header.Get("Authorization"), admission.Host(r.RemoteAddr))
	leave, err := h.admit(w, r, route, from)
	if err != nil {
		return err
	}
	defer leave()
	held := h.deps.Gate.Bytes(from)
	defer held.Close()
	r = r.WithContext(withAccount(r.Context(), held))
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, AssetsPrefix):
		return h.deps.Assets.Serve(w, r, strings.TrimPrefix(path, AssetsPrefix))
	case strings.HasPrefix(path, seamAssets) && h.deps.Seams != nil: // the token is the credential
		return h.deps.Assets.Serve(w, r, strings.TrimPrefix(path, seamAssets))
	case strings.HasPrefix(path, seamPrefix):
		return h.seam(w, r)
	}
	if st := h.streamOf(r.URL.Path); st != nil && r.Method == http.MethodGet {
		if _, err := h.deps.Keys.Check(st.method, r.Header.Get("Authorization")); err != nil {
			return err
		}
		if err := checkHeaders(r); err != nil {
			return err
		}
		if err := checkQuery(r, st.query); err != nil {
			return err
		}
		if !wantsJSON(r.Header.Get("Accept")) {
			leave() // streams have their own limit
		}
		st.serve.ServeHTTP(w, r)
		return nil
	}
	// A caller that reads its answer slowly holds bytes, no slot.
	out := &accounted{ResponseWriter: w, held: held, leave: leave}
	if err := h.translated(out, r, route, allowed); err != nil {
		return err
	}
	out.finish()
	return nil
}

func versioned(path string) bool {
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, envelopesPrefix) || path == "/.well-known/openwop"
}

func getOnly(w http.ResponseWriter, r *http.Request, next http.Handler) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return notAllowed(w, []string{http.MethodGet})
	}
	next.ServeHTTP(w, r)
	return nil
}

func notAllowed(w http.ResponseWriter, allowed []string) error {
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return fault.New(fault.MethodNotAllowed, "this path allows %s", strings.Join(allowed, ", "))
}

// retryCapacity is the Retry-After if the host is slow or not ready.
const retryCapacity = time.Second

// admit applies the checks that come before authentication. After a nil error the request
// has a slot, which leave releases. route is nil if the request is not translated.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request, route *Route, from admission.Caller) (leave func(), err error) {
	limit := h.cfg.MaxBodyBytes
	if h.deps.Seams != nil && strings.HasPrefix(r.URL.Path, seamPrefix) {
		limit = max(limit, maxSeamBody)
	}
	if r.ContentLength > limit {
		return nil, refused{h.tooLarge()}
	}
	class := admission.Ordinary
	if route != nil {
		class = admission.ClassOf(route.Method)
	}
	if leave, err = h.deps.Gate.Enter(class, from); err != nil {
		return nil, refused{err}
	}
	if err := h.limitRate(w, r, route, from); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

func (h *Handler) tooLarge() error {
	return fault.New(fault.PayloadTooLarge, "the body is larger than %d bytes", h.cfg.MaxBodyBytes).With("limitBytes", h.cfg.MaxBodyBytes)
}

// translated checks the credential and the body, and forwards the request to the gRPC side.
// allowed lists the methods of a path that has no route for this one.
func (h *Handler) translated(w http.ResponseWriter, r *http.Request, route *Route, allowed []string) error {
	if route == nil {
		if _, err := h.deps.Keys.Authenticate(r.Header.Get("Authorization")); err != nil {
			return err // unauthenticated callers must not learn which paths exist
		}
		if len(allowed) > 0 {
			return notAllowed(w, allowed)
		}
		return fault.New(fault.NotFound, "no resource at this path")
	}
	if _, err := h.deps.Keys.Check(route.Method, r.Header.Get("Authorization")); err != nil {
		return err
	}
	if token, ok := route.token(r.URL.Path); ok {
		if err := h.deps.CheckToken(token); err != nil {
			return err
		}
	}
	if err := checkHeaders(r); err != nil {
		return err
	}
	if err := route.checkQuery(r); err != nil {
		return err
	}
	if route.Body != nil {
		if err := h.readBody(r, route); err != nil {
			return err
		}
	}
	h.grpc.ServeHTTP(answerWriter(w, r, route), r)
	return nil
}

// readBody reads the body and replaces it with the decoded message.
func (h *Handler) readBody(r *http.Request, route *Route) error {
	body, err := h.receive(r)
	if err != nil {
		return err
	}
	msg := route.Body()
	if len(body) == 0 && route.BodyOptional {
		r.Body = &decoded{msg}
		return nil
	}
	if err := checkContentType(r); err != nil {
		return err
	}
	limits := strictjson.Limits{MaxBytes: int(h.cfg.MaxBodyBytes), MaxDepth: maxDepth}
	if err := wirejson.Decode(body, limits, msg, route.FromPath...); err != nil {
		return err
	}
	r.Body = &decoded{msg}
	return nil
}

func checkContentType(r *http.Request) error {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || t != "application/json" {
		return fault.InvalidHeader("Content-Type", "want application/json")
	}
	return nil
}

// seam serves a test seam if they are enabled.
func (h *Handler) seam(w http.ResponseWriter, r *http.Request) error {
	if h.deps.Seams == nil {
		return fault.New(fault.NotFound, "test seams are disabled")
	}
	p, err := h.deps.Keys.Authenticate(r.Header.Get("Authorization"))
	if err != nil {
		return err
	}
	h.deps.Seams.ServeHTTP(w, r.WithContext(auth.WithPrincipal(r.Context(), p)))
	return nil
}

func (h *Handler) health(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	if r.URL.Path == ReadyPath {
		if err := h.deps.Ready(); err != nil {
			return fault.New(fault.ServiceUnavailable, "not ready: %s", err).After(retryCapacity)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	doc := struct {
		Status   string   `json:"status"`
		Warnings []string `json:"warnings,omitempty"`
	}{Status: "ok"}
	if r.URL.Path == ReadyPath && h.deps.Warnings != nil {
		doc.Warnings = h.deps.Warnings()
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}
