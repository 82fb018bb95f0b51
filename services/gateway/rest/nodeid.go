package rest

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
)

// Node ids are arbitrary text and may contain path separators: a slash, which arrives as %2F,
// or the colon that starts a verb. The translator splits the unescaped path, so such an id is
// removed from the path here and set in the message by nodeIDs.

// standIn is the path segment that replaces a removed id.
const standIn = "-"

type nodeIDKey struct{}

// withNodeID removes the node id from the path of an interrupt's answer or assignee if it contains
// a separator. Other requests are returned unchanged.
func withNodeID(r *http.Request) *http.Request {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	if len(parts) == 7 && parts[6] != "assignee" || len(parts) < 6 || len(parts) > 7 ||
		parts[1] != "v1" || parts[2] != "runs" || parts[4] != "interrupts" {
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

// nodeIDs sets removed ids in messages.
type nodeIDs struct{ grpc.ClientConnInterface }

// Invoke calls a method.
func (c nodeIDs) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if id, taken := ctx.Value(nodeIDKey{}).(string); taken {
		switch req := args.(type) {
		case *openwopv1.ResolveInterruptByRunRequest:
			req.NodeId = id
		case *hostv1.AssignInterruptRequest:
			req.NodeId = id
		case *hostv1.ReleaseInterruptRequest:
			req.NodeId = id
		}
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}
