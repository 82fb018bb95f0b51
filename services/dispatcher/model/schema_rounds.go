package model

import (
	"context"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// sideChannel reports the kinds with which model and host exchange schemas. They do not answer the
// node's question and no reader sees them (OpenWOP envelope contract §3.3).
func sideChannel(kind string) bool {
	return kind == wire.KindSchemaRequest || kind == wire.KindSchemaResponse
}

// onlySideChannel reports whether the turn only requested or acknowledged schemas.
func (t *turn) onlySideChannel() bool {
	return len(t.accepted) > 0 && !slices.ContainsFunc(t.accepted, func(a acceptedEnvelope) bool { return !sideChannel(a.Type) })
}

// addRequestedSchemas adds the requested schemas; another turn follows. The turn was valid, so
// there is no retry event, but the call counts against the budget.
func (t *turn) addRequestedSchemas(ctx context.Context) verdict {
	for _, a := range t.accepted {
		if a.Type != wire.KindSchemaRequest {
			continue
		}
		if err := t.addSchema(ctx, a.Payload); err != nil {
			return verdict{done: &Result{Interrupted: err}}
		}
	}
	return verdict{continues: true, failure: schemaTalkFailure()}
}

// schemaTalkFailure is the failure of a turn about schemas if no attempt is left.
func schemaTalkFailure() failure {
	return failure{reason: reasonTypeDrift, code: fault.EnvelopeInvalid, detail: "it talks about schemas and holds no answer"}
}

// addSchema adds the schema of a requested kind to the prompt of all further turns, once. The
// accept pipeline has checked that the kind exists.
func (c *call) addSchema(ctx context.Context, payload []byte) error {
	var asked struct {
		EnvelopeType string `json:"envelopeType"`
	}
	if err := strictjson.Read(payload, &asked); err != nil {
		return fmt.Errorf("read an accepted %s: %w", wire.KindSchemaRequest, err)
	}
	k, ok, err := c.deps.Schemas.Kind(ctx, asked.EnvelopeType)
	if err != nil || !ok || slices.Contains(c.addedSchemas, k.Name) {
		return err
	}
	c.addedSchemas = append(c.addedSchemas, k.Name)
	if c.req.System != "" {
		c.req.System += "\n\n"
	}
	c.req.System += fmt.Sprintf("JSON Schema of the payload of envelopes of type %s, version %d:\n%s", k.Name, k.Version, k.Schema)
	return nil
}
