package client

import (
	"context"
	"net/http"

	"waybill.dev/waybill/protocol/view"
)

// View reads the model answers of a run, its timeline, and its tokens and cost. Only hosts of
// Waybill have this read.
func (c *Client) View(ctx context.Context, runID string) (*view.Run, error) {
	out := &view.Run{}
	_, err := c.into(ctx, request{
		method: http.MethodGet, path: runPath(runID) + ":view", feature: "the model answers of a run", runID: runID,
	}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}
