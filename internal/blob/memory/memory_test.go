package memory_test

import (
	"testing"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/blob/blobtest"
	"waybill.dev/waybill/internal/blob/memory"
)

func TestStore_FulfilsTheContract(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(*testing.T) blob.Store { return memory.New() })
}
