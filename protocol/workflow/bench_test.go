package workflow_test

import (
	"testing"

	"waybill.dev/waybill/protocol/workflow"
)

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := workflow.Parse([]byte(rich)); problems != nil {
			b.Fatal(problems)
		}
	}
}
