package memory_test

import (
	"testing"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/kvtest"
	"waybill.dev/waybill/internal/kv/memory"
)

func TestStore_KeepsThePortsContract(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(*testing.T) kv.Store { return memory.New() })
}
