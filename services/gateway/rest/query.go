package rest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/services/gateway/auth"
)

// parameter is a query parameter of a route.
type parameter struct {
	name string
	kind protoreflect.Kind
	// many allows several values, each a parameter of its own.
	many bool
}

// eventsQuery are the parameters of an event stream. The engine checks their values after it has found
// the run (OpenWOP host contract §4.1), so all are strings here. Clients that cannot send the header
// Last-Event-ID send lastEventId.
var eventsQuery = []parameter{
	{name: "streamMode", kind: protoreflect.StringKind},
	{name: "bufferMs", kind: protoreflect.StringKind},
	{name: "lastEventId", kind: protoreflect.StringKind},
}

// checkQuery checks the query of a request. Public documents, and links with a token, have no parameters
// and ignore all: clients add their own to avoid caches, mail systems to count clicks.
func (r *Route) checkQuery(req *http.Request) error {
	if scopes, _ := auth.ScopesOf(r.Method); len(scopes) == 0 {
		return nil
	}
	return checkQuery(req, queries[r.Method])
}

// queries are the parameters of the routes, by method.
var queries = func() map[string][]parameter {
	out := map[string][]parameter{}
	for i := range Routes {
		r := &Routes[i]
		for _, f := range r.QueryFields() {
			out[r.Method] = append(out[r.Method], parameter{f.JSONName(), f.Kind(), f.IsList()})
		}
	}
	// Clients that poll because their stream failed send the parameters of the stream, too.
	poll := hostv1.Host_PollRunEvents_FullMethodName
	out[poll] = append(out[poll], eventsQuery...)
	return out
}()

// QueryFields returns the fields of the request that are query parameters: all those of a route without
// a body that are not in its path.
func (r *Route) QueryFields() (out []protoreflect.FieldDescriptor) {
	if r.Body != nil {
		return nil
	}
	fields := r.Input().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); !strings.Contains(r.Path, "{"+string(f.Name())+"}") {
			out = append(out, f)
		}
	}
	return out
}

// Input returns the descriptor of the request's message.
func (r *Route) Input() protoreflect.MessageDescriptor { return MethodOf(r.Method).Input() }

// MethodOf returns the descriptor of a full method name. A name that is not registered panics.
func MethodOf(full string) protoreflect.MethodDescriptor {
	service, name, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + name))
	if err != nil {
		panic(fmt.Errorf("rest: %s: %w", full, err)) // covered by the table of routes
	}
	return d.(protoreflect.MethodDescriptor) //nolint:forcetypeassert // as above
}

// maxQueryProblems limits the problems that an error lists.
const maxQueryProblems = 20

// checkQuery checks that a query has known parameters only, with values of their types, and more than
// one only where several are allowed. A misspelt filter that were ignored would return what it was
// meant to leave out.
func checkQuery(r *http.Request, known []parameter) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // it quotes the query
		return fault.InvalidQuery("", "want name=value pairs, separated by & and percent-encoded")
	}
	var found []fault.Problem
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if p := queryProblem(name, values[name], known); p != nil && len(found) < maxQueryProblems {
			found = append(found, *p)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fault.Invalid(found[0], found[1:]...)
}

// queryProblem returns the problem of a parameter; nil without one.
func queryProblem(name string, values []string, known []parameter) *fault.Problem {
	p := &fault.Problem{In: fault.Query, Path: strings.ToValidUTF8(name, "�")}
	i := slices.IndexFunc(known, func(k parameter) bool { return k.name == name })
	switch {
	case i < 0:
		describeUnknown(p, known)
	case len(values) > 1 && !known[i].many:
		p.Message = fmt.Sprintf("the parameter is there %d times; send it once", len(values))
	default:
		for _, v := range values {
			if p.Message == "" {
				p.Message = wantOf(known[i].kind, v)
			}
		}
	}
	if p.Message == "" {
		return nil
	}
	return p
}

// describeUnknown describes a parameter that the route does not have.
func describeUnknown(p *fault.Problem, known []parameter) {
	for _, k := range known {
		p.Allowed = append(p.Allowed, k.name)
	}
	if len(known) == 0 {
		p.Message = "unknown parameter; this path has none"
		return
	}
	p.Message = "unknown parameter; known are " + strings.Join(p.Allowed, ", ")
	if p.Suggestion = schema.Near(p.Path, p.Allowed); p.Suggestion != "" {
		p.Message += "; did you mean " + p.Suggestion + "?"
	}
}

// integer is a decimal integer as in JSON. The translation would read a leading 0 as octal.
var integer = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// wantOf describes the valid values of a parameter; empty if its value is valid.
func wantOf(kind protoreflect.Kind, value string) string {
	switch kind {
	case protoreflect.BoolKind:
		if value != "true" && value != "false" {
			return "want true or false"
		}
	case protoreflect.Int32Kind, protoreflect.Int64Kind:
		bits := 64
		if kind == protoreflect.Int32Kind {
			bits = 32
		}
		if _, err := strconv.ParseInt(value, 10, bits); err != nil || !integer.MatchString(value) {
			return "want an integer of " + strconv.Itoa(bits) + " bits"
		}
	default:
		if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			return "want text in UTF-8, without NUL"
		}
	}
	return ""
}
