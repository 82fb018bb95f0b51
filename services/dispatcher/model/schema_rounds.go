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
	isAnswer := func(a acceptedEnvelope) bool { return !sideChannel(a.Type) }
	return len(t.accepted) > 0 && !slices.ContainsFunc(t.accepted, isAnswer)
}

// requestSchemas requests another turn with the requested schemas. The turn was valid, so there is
// no retry event, but the call counts against the budget.
func (t *turn) requestSchemas(ctx context.Context) verdict {
	v := verdict{continues: true, failure: schemaTalkFailure()}
	for _, a := range t.accepted {
		if a.Type != wire.KindSchemaRequest {
			continue
		}
		kinds, err := t.requestedKind(ctx, a.Payload)
		if err != nil {
			return verdict{done: &Result{Interrupted: err}}
		}
		v.schemas = append(v.schemas, kinds...)
	}
	return v
}

// schemaTalkFailure is the failure of a turn about schemas if no attempt is left.
func schemaTalkFailure() failure {
	return failure{
		reason: reasonTypeDrift,
		code:   fault.EnvelopeInvalid,
		detail: "it talks about schemas and holds no answer",
	}
}

// requestedKind returns the kind of a schema request; nothing for an unknown kind. The accept
// pipeline has checked that the kind exists.
func (l *Loop) requestedKind(ctx context.Context, payload []byte) ([]Kind, error) {
	var asked struct {
		EnvelopeType string `json:"envelopeType"`
	}
	if err := strictjson.Read(payload, &asked); err != nil {
		return nil, fmt.Errorf("read an accepted %s: %w", wire.KindSchemaRequest, err)
	}
	k, ok, err := l.deps.Schemas.Kind(ctx, asked.EnvelopeType)
	if err != nil || !ok {
		return nil, err
	}
	return []Kind{k}, nil
}

// withSchemas adds the schemas of kinds to the prompt of all further turns, each once.
func (p progress) withSchemas(kinds []Kind) progress {
	for _, k := range kinds {
		if slices.Contains(p.schemas, k.Name) {
			continue
		}
		p.schemas = append(slices.Clone(p.schemas), k.Name)
		if p.req.System != "" {
			p.req.System += "\n\n"
		}
		p.req.System += fmt.Sprintf("JSON Schema of the payload of envelopes of type %s, version %d:\n%s",
			k.Name, k.Version, k.Schema)
	}
	return p
}
