package golden

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/openapi"
	"waybill.dev/waybill/test/harness"
)

// The description of the API has a variant for each event type of the host, with its payload.
func TestDescription_HasEveryEvent(t *testing.T) {
	t.Parallel()
	doc, err := openapi.Document("")
	require.NoError(t, err)
	var v struct {
		Components struct {
			Schemas struct {
				EventType struct{ Enum []wire.EventType }
			}
		}
	}
	require.NoError(t, json.Unmarshal(doc, &v))
	require.ElementsMatch(t, emitted(t), v.Components.Schemas.EventType.Enum, "services/gateway/openapi/shapes/events.yaml")

	d, err := harness.ReadDescription(doc)
	require.NoError(t, err)
	for _, file := range recordings(t) {
		_, events, _ := load(t, file)
		for _, e := range events {
			assert.NoError(t, d.Validate([]string{"components", "schemas", "RunEvent"}, e.AppendJSON(nil)), file)
		}
	}
}
