package model

import (
	"context"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
)

// The kinds by which host and model talk about schemas. They are no answer to
// the node's question, and nobody else is shown them (OpenWOP envelope contract
// §3.3).
const (
	kindSchemaRequest  = "schema.request"
	kindSchemaResponse = "schema.response"
)

func sideChannel(kind string) bool { return kind == kindSchemaRequest || kind == kindSchemaResponse }

// onlySideChannel reports a turn in which the model has asked for schemas, or
// thanked for them, and has not answered yet.
func (t *turn) onlySideChannel() bool {
	return len(t.accepted) > 0 && !slices.ContainsFunc(t.accepted, func(a acceptedEnvelope) bool { return !sideChannel(a.Type) })
}

// another gives the model what it asked for; its next turn follows. The turn
// went well, so there is no retry event, but the call counts against the budget.
func (t *turn) another(ctx context.Context) verdict {
	for _, a := range t.accepted {
		if a.Type != kindSchemaRequest {
			continue
		}
		if err := t.teach(ctx, a.Payload); err != nil {
			return verdict{done: &Result{Interrupted: err}}
		}
	}
	return verdict{goOn: true, failure: talkFailure()}
}

// talkFailure is what a turn about schemas comes to when no attempt is left.
func talkFailure() failure {
	return failure{reason: reasonTypeDrift, code: fault.EnvelopeInvalid, detail: "it talks about schemas and holds no answer"}
}

// teach puts the schema of the kind that was asked for into the model's context,
// once and for all further turns. The accept pipeline has checked that there is
// such a kind.
func (c *call) teach(ctx context.Context, payload []byte) error {
	var asked struct {
		EnvelopeType string `json:"envelopeType"`
	}
	if err := strictjson.Read(payload, &asked); err != nil {
		return fmt.Errorf("read an accepted %s: %w", kindSchemaRequest, err)
	}
	k, ok, err := c.deps.Schemas.Kind(ctx, asked.EnvelopeType)
	if err != nil || !ok || slices.Contains(c.taught, k.Name) {
		return err
	}
	c.taught = append(c.taught, k.Name)
	if c.req.System != "" {
		c.req.System += "\n\n"
	}
	c.req.System += fmt.Sprintf("JSON Schema of the payload of envelopes of type %s, version %d:\n%s", k.Name, k.Version, k.Schema)
	return nil
}
