package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/rest"
	"waybill.dev/waybill/services/gateway/wirejson"
	"waybill.dev/waybill/test/harness"
)

// call is one request, in a form for both REST and gRPC.
type call struct {
	key string
	// path has the path parameters by proto name, query the query parameters.
	path  map[string]string
	query url.Values
	body  string
}

// sides are the REST and the gRPC client.
type sides struct {
	t    *testing.T
	host *harness.Host
	conn *grpc.ClientConn
}

func bothSides(t *testing.T) *sides {
	t.Helper()
	s := &sides{t: t, host: shared.Host(t)}
	var err error
	s.conn, err = grpc.NewClient(s.host.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.conn.Close()) })
	return s
}

// rest makes a call over HTTP. A failure is returned as the error in its body.
func (s *sides) rest(t *testing.T, r *rest.Route, c call) ([]byte, error) {
	t.Helper()
	path := r.Path
	for name, value := range c.path {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	require.NotContains(t, path, "{", "a parameter that the case does not give")
	if len(c.query) > 0 {
		path += "?" + c.query.Encode()
	}
	a := do(t, client(t, c.key), r.HTTP, path, c.body)
	if a.Status == r.Success || r.Also != 0 && a.Status == r.Also {
		return a.Body, nil
	}
	e, err := fault.ParseEnvelope(a.Body)
	require.NoError(t, err, "%d %s", a.Status, a.Body)
	require.Equal(t, fault.Lookup(e.Code).HTTP, a.Status, "%s", a.Body)
	return nil, e
}

// grpc makes the same call over gRPC and returns the answer in REST's form.
func (s *sides) grpc(t *testing.T, r *rest.Route, c call) ([]byte, error) {
	t.Helper()
	in, out := messages(t, r.Method)
	s.fill(t, in, r, c)
	err := s.conn.Invoke(as(t, c.key), r.Method, in, out)
	if err != nil {
		return nil, faultOf(t, err)
	}
	switch {
	case r.Success == http.StatusNoContent:
		return nil, nil
	case r.Document != "":
		f := out.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(r.Document))
		return out.ProtoReflect().Get(f).Message().Interface().(*openwopv1.JsonDocument).GetJson(), nil //nolint:forcetypeassert // a document
	}
	body, err := wirejson.Append(nil, out)
	require.NoError(t, err)
	return body, nil
}

// faultOf reads the envelope of a status and checks its code against the table.
func faultOf(t *testing.T, err error) error {
	t.Helper()
	st, ok := status.FromError(err)
	require.True(t, ok, "%v", err)
	require.Len(t, st.Proto().GetDetails(), 1, "%v", err)
	e, perr := fault.ParseEnvelope(st.Proto().GetDetails()[0].GetValue())
	require.NoError(t, perr)
	require.Equal(t, codes.Code(fault.Lookup(e.Code).GRPC), st.Code(), "%v", err) //nolint:gosec // G115: 0 to 16
	return e
}

// messages returns a method's request and response, by its full name.
func messages(t *testing.T, method string) (in, out proto.Message) {
	t.Helper()
	name := strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", ".")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	require.NoError(t, err)
	m, ok := d.(protoreflect.MethodDescriptor)
	require.True(t, ok)
	of := func(d protoreflect.MessageDescriptor) proto.Message {
		typ, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
		require.NoError(t, err)
		return typ.New().Interface()
	}
	return of(m.Input()), of(m.Output())
}

// fill puts body, path and query into the request as the mapping defines.
func (s *sides) fill(t *testing.T, in proto.Message, r *rest.Route, c call) {
	t.Helper()
	m := in.ProtoReflect()
	if r.Body != nil && c.body != "" {
		body := r.Body()
		require.NoError(t, wirejson.Decode([]byte(c.body), strictjson.Limits{MaxBytes: maxBody, MaxDepth: 64}, body, r.FromPath...))
		if body.ProtoReflect().Descriptor() == m.Descriptor() {
			proto.Merge(in, body)
		} else { // the body is one member of the request
			m.Set(m.Descriptor().Fields().Get(0), protoreflect.ValueOfMessage(body.ProtoReflect()))
		}
	}
	for name, value := range c.path {
		put(t, m, m.Descriptor().Fields().ByName(protoreflect.Name(name)), value)
	}
	for name, values := range c.query {
		put(t, m, m.Descriptor().Fields().ByJSONName(name), values[0])
	}
}

func put(t *testing.T, m protoreflect.Message, f protoreflect.FieldDescriptor, value string) {
	t.Helper()
	require.NotNil(t, f, "%s has no such member", m.Descriptor().FullName())
	if f.IsList() {
		m.Mutable(f).List().Append(protoreflect.ValueOfString(value))
		return
	}
	switch f.Kind() {
	case protoreflect.StringKind:
		m.Set(f, protoreflect.ValueOfString(value))
	case protoreflect.BoolKind:
		m.Set(f, protoreflect.ValueOfBool(value == "true"))
	case protoreflect.Int32Kind:
		n, err := strconv.ParseInt(value, 10, 32)
		require.NoError(t, err)
		m.Set(f, protoreflect.ValueOfInt32(int32(n)))
	default:
		n, err := strconv.ParseInt(value, 10, 64)
		require.NoError(t, err)
		m.Set(f, protoreflect.ValueOfInt64(n))
	}
}

// Values that differ between two calls: generated ids and times, and what other tests add to the log.
var (
	madeUp   = []string{"runId", "webhookId", "annotationId", "secret", "secretFingerprint", "previousSecretFingerprint", "eventsUrl", "statusUrl", "id", "seq", "hash", "entries", "sequence", "sourceRunId", "nextCursor", "checkedAt", "sha256", "end", "bytes", "applied", "behind", "taken", "waiting"}
	instants = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|run_[0-9a-z]{26}|int_[0-9a-f]{32}`)
)

// shape returns an answer without generated values.
func shape(t *testing.T, doc []byte) string {
	t.Helper()
	if len(doc) == 0 {
		return ""
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	require.NoError(t, d.Decode(&v), "%s", doc)
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if slices.Contains(madeUp, name) {
					member = fmt.Sprintf("a %T", member)
				}
				v[name] = walk(member)
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case string:
			return instants.ReplaceAllString(v, "made up")
		}
		return v
	}
	out, err := json.Marshal(walk(v))
	require.NoError(t, err)
	return string(out)
}

// commonError returns the part of an error that both sides must have.
func commonError(err error) string {
	e, ok := fault.As(err)
	if !ok {
		return fmt.Sprint(err)
	}
	delete(e.Details, "correlationId")
	return string(e.Envelope())
}

// same makes a call on both sides, each on its own object from build, and compares the answers.
// exact requires equal bytes.
func (s *sides) same(t *testing.T, r *rest.Route, exact bool, build func(*testing.T) call) (refused bool) {
	t.Helper()
	restBody, restErr := s.rest(t, r, build(t))
	grpcBody, grpcErr := s.grpc(t, r, build(t))
	if restErr != nil || grpcErr != nil {
		require.Error(t, restErr, "gRPC refused: %v", grpcErr)
		require.Error(t, grpcErr, "REST refused: %v", restErr)
		// The sides have objects of their own: times in messages differ.
		require.JSONEq(t, instants.ReplaceAllString(commonError(restErr), "made up"), instants.ReplaceAllString(commonError(grpcErr), "made up"))
		return true
	}
	if exact {
		require.Equal(t, string(restBody), string(grpcBody))
		return false
	}
	require.JSONEq(t, `[`+shape(t, restBody)+`]`, `[`+shape(t, grpcBody)+`]`)
	return false
}

// gRPC serves everything that REST serves, with the same results and errors (OpenWOP host contract
// §9.1, §9.4). A route without a case fails.
func TestParity_RESTAndGRPCAnswerAlike(t *testing.T) {
	t.Parallel()
	s := bothSides(t)
	all := parityCases(s)
	seen := map[string]bool{}
	for i := range rest.Routes {
		r := &rest.Routes[i]
		seen[r.Method] = true
		t.Run(r.HTTP+" "+r.Path, func(t *testing.T) {
			t.Parallel()
			cases := all[r.Method]
			require.NotEmpty(t, cases, "there is no case for this operation")
			good := 0
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					refused := s.same(t, r, c.exact, c.build)
					require.Equal(t, c.refused, refused)
				})
				if !c.refused {
					good++
				}
			}
			require.True(t, good > 0 || refusedOnly[r.Method], "nothing succeeds")
			s.strangers(t, r, cases[0].build)
		})
	}
	for method := range all {
		require.True(t, seen[method], "%s is no route", method)
	}
}

// strangers makes a call without a key, with an unknown key, and without the scope.
func (s *sides) strangers(t *testing.T, r *rest.Route, build func(*testing.T) call) {
	t.Helper()
	scopes, known := auth.ScopesOf(r.Method)
	require.True(t, known)
	if len(scopes) == 0 {
		return // public
	}
	lacking := writerKey
	if slices.Contains(scopes, auth.RunsCreate) {
		lacking = readerKey
	}
	for name, key := range map[string]string{"no key": "", "an unknown key": "hk_live_ffffffffffffffff", "a key without the scope": lacking} {
		t.Run(name, func(t *testing.T) {
			require.True(t, s.same(t, r, false, func(t *testing.T) call {
				c := build(t)
				c.key = key
				return c
			}))
		})
	}
}
