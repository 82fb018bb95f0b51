package serve

import (
	"testing"

	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/natsd/natsdtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, natsdtest.LeftBehind()...)
}
