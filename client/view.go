package client

import (
	"context"

	"waybill.dev/waybill/protocol/view"
)

// View reads the model answers of a run, its timeline, and its tokens and cost. Only hosts of
// Waybill have this read.
func (c *Client) View(ctx context.Context, runID string) (*view.Run, error) {
	out := &view.Run{}
	if _, err := c.get(ctx, runPath(runID)+":view", nil, out); err != nil {
		return nil, err
	}
	return out, nil
}
