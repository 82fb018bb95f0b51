package workflowfolder

import (
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/redactor/redact"
)

// Secrets returns the places of a definition that a host rejects, because they look like secrets.
// A host also rejects its own secrets.
func Secrets(def *workflow.Definition) []workflow.Problem {
	if def == nil {
		return nil
	}
	clean, count, err := redact.Compile(nil).With(redact.DefaultShapes()).JSON(def.Raw, strictjson.Default)
	if err != nil || count == 0 {
		return nil // a document that cannot be read is reported elsewhere
	}
	f, _ := fault.As(definition.NewSecretFault(def.Raw, clean))
	return definition.SecretProblems(f)
}
