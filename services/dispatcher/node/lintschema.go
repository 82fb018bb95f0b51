package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/projection"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

const outputSchema = "outputSchema"

// lintStructured finds what keeps a node from ever being answered: a schema that is none, or one
// that the vendor it names cannot be told (OpenWOP envelope contract §20).
func lintStructured(config json.RawMessage) []workflow.Problem {
	l := &lint{}
	asked, text := schemaOf(config)
	if text == nil {
		return nil // the node says it when it starts
	}
	if _, err := schema.Compile(outputSchema, text); err != nil {
		l.add("/"+outputSchema, schema.RuleNotSchema, err.Error())
		return l.found
	}
	if v := projection.Vendor(asked); slices.Contains(projection.Vendors(), v) {
		l.found = unsayable(text, v)
	}
	return l.found
}

// warnStructured finds what keeps such a node from being answered by a vendor that it does not name
// and that a run, or the host, may.
func warnStructured(config json.RawMessage) []workflow.Problem {
	asked, text := schemaOf(config)
	if asked != "" || text == nil {
		return nil
	}
	return slices.DeleteFunc(unsayable(text, projection.Vendors()...), func(p workflow.Problem) bool {
		return p.Rule == schema.RuleNotSchema // no warning, but a problem
	})
}

// schemaOf is the provider that a config names, and the schema in it.
func schemaOf(config json.RawMessage) (asked string, text json.RawMessage) {
	cfg, err := settings(config)
	if err != nil {
		return "", nil
	}
	asked, _ = strictjson.String(cfg["provider"])
	return asked, cfg[outputSchema]
}

// unsayable lists where vendors cannot be told a schema, by the rules of projections; what they have
// in common is one problem.
func unsayable(text json.RawMessage, vendors ...projection.Vendor) []workflow.Problem {
	var places []projection.Problem // without the vendor
	whose := map[projection.Problem][]string{}
	for _, v := range vendors {
		_, problems := projection.Compile(text, v)
		for _, p := range problems {
			p.Vendor = ""
			if whose[p] == nil {
				places = append(places, p)
			}
			whose[p] = append(whose[p], string(v))
		}
	}
	l := &lint{}
	for _, p := range places {
		l.add("/"+outputSchema+p.Path, p.Rule, fmt.Sprintf("%s cannot be told this schema: %s", strings.Join(whose[p], " and "), p.Message))
	}
	return l.found
}
