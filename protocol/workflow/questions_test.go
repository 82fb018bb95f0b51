package workflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
)

func TestQuestions(t *testing.T) {
	t.Parallel()
	limit := func(d time.Duration) *time.Duration { return &d }
	for settings, want := range map[string]workflow.QuestionSettings{
		`{}`:               {OnDecline: workflow.DeclineContinue},
		`{"questions":{}}`: {OnDecline: workflow.DeclineContinue},
		`{"questions":{"timeoutMs":1500,"onDecline":"continue"}}`: {Timeout: limit(1500 * time.Millisecond), OnDecline: workflow.DeclineContinue},
		`{"questions":{"timeoutMs":0,"onDecline":"fail"}}`:        {Timeout: limit(0), OnDecline: workflow.DeclineFail},
		`{"questions":{"timeoutMs":31622400000}}`:                 {Timeout: limit(workflow.MaxQuestionTimeout), OnDecline: workflow.DeclineContinue},
	} {
		def, found := withSettings(settings)
		require.Empty(t, found, settings)
		require.Equal(t, want, def.Nodes[0].Questions(), settings)
	}
}

func TestParse_RejectsInvalidQuestions(t *testing.T) {
	t.Parallel()
	for settings, path := range map[string]string{
		`{"questions":5}`:                         "",
		`{"questions":{"timeoutMs":-1}}`:          "/timeoutMs",
		`{"questions":{"timeoutMs":1.5}}`:         "/timeoutMs",
		`{"questions":{"timeoutMs":"5s"}}`:        "/timeoutMs",
		`{"questions":{"timeoutMs":31622400001}}`: "/timeoutMs",
		`{"questions":{"onDecline":"skip"}}`:      "/onDecline",
		`{"questions":{"onDecline":true}}`:        "/onDecline",
		`{"questions":{"timeout":5}}`:             "/timeout",
	} {
		_, found := withSettings(settings)
		require.Len(t, found, 1, settings)
		require.Equal(t, "/nodes/0/settings/questions"+path, found[0].Path)
		require.Equal(t, workflow.RuleQuestions, found[0].Rule)
	}
}
