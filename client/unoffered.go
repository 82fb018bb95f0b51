package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
)

// UnofferedError means that the host does not offer something that the protocol leaves to hosts, or
// that only hosts of Waybill have.
type UnofferedError struct {
	// Feature is what the host does not offer, such as "a list of runs".
	Feature string
	// Reason is how the host answered.
	Reason string
}

// Error names the feature.
func (e *UnofferedError) Error() string {
	return fmt.Sprintf("this host does not offer %s (%s)", e.Feature, e.Reason)
}

// offered replaces the error of a host without the route of a request.
func (c *Client) offered(ctx context.Context, r request, err error) error {
	if r.feature == "" {
		return err
	}
	status, lacks := lacksRoute(r, err)
	if !lacks {
		return err
	}
	var missing error
	if r.runID != "" {
		_, missing = c.Run(ctx, r.runID) // the run may be missing instead
	} else {
		_, missing = c.Capabilities(ctx) // the URL may not be that of a host
	}
	if missing != nil {
		return err
	}
	return &UnofferedError{Feature: r.feature, Reason: fmt.Sprintf("%s %s: HTTP %d", r.method, r.path, status)}
}

// lacksRoute reports whether an answer may mean that the host does not know the path or the method.
func lacksRoute(r request, err error) (status int, lacks bool) {
	var code fault.Code
	if refused, ok := errors.AsType[*Error](err); ok {
		status, code = refused.Status, refused.Fault.Code
	} else if foreign, ok := errors.AsType[*ForeignError](err); ok && !errors.Is(err, ErrUnreachable) {
		status = foreign.Status
	}
	switch status {
	case http.StatusMethodNotAllowed:
		return status, true
	case http.StatusNotFound, http.StatusNotImplemented:
		verbInID := code == fault.RunNotFound && r.runID != "" // a router may read the verb as part of the id
		return status, verbInID || !fault.Known(code) || code == fault.NotFound
	default:
		return status, false
	}
}

// list reads a page of a list. Lists are not part of the protocol, so that another host's may have
// another form.
func (c *Client) list(ctx context.Context, r request, member string, out any) (*Answer, error) {
	r.method = http.MethodGet
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	if rows := strictjson.Object(a.Body)[member]; len(rows) == 0 || rows[0] != '[' {
		return nil, &UnofferedError{
			Feature: r.feature + " in the form that this program reads",
			Reason:  "the answer to " + r.method + " " + r.path + " has no list " + member,
		}
	}
	if err := json.Unmarshal(a.Body, out); err != nil {
		return nil, &ForeignError{URL: c.base.String() + r.path, Status: a.Status, Reason: "invalid answer: " + err.Error()}
	}
	return a, nil
}
