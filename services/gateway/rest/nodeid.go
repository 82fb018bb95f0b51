package rest

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
)

// Ids of nodes are any text, and one may hold what paths are cut at: a slash, which
// arrives as %2F, or the colon that begins a verb. The translator cuts the path after it
// was unescaped, so such an id is taken out here and put into the message there.

// standIn is the segment in the place of an id that was taken out.
const standIn = "-"

type nodeIDKey struct{}

// withNodeID takes the id of a node out of the path by which its interrupt is answered,
// if it holds such a character; other requests stay as they are.
func withNodeID(r *http.Request) *http.Request {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	if len(parts) != 6 || parts[1] != "v1" || parts[2] != "runs" || parts[4] != "interrupts" {
		return r
	}
	id, err := url.PathUnescape(parts[5])
	if err != nil || !strings.ContainsAny(id, "/:") {
		return r
	}
	parts[5] = standIn
	path, err := url.PathUnescape(strings.Join(parts, "/"))
	if err != nil {
		return r
	}
	r = r.WithContext(context.WithValue(r.Context(), nodeIDKey{}, id))
	u := *r.URL
	u.Path, u.RawPath = path, ""
	r.URL = &u
	return r
}

// nodeIDs puts ids that were taken out into messages.
type nodeIDs struct{ grpc.ClientConnInterface }

// Invoke calls a method.
func (c nodeIDs) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if id, taken := ctx.Value(nodeIDKey{}).(string); taken {
		if req, is := args.(*openwopv1.ResolveInterruptByRunRequest); is {
			req.NodeId = id
		}
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}
