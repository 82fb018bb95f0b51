package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Deploy registers workflows for each of the keys.
func (h *Host) Deploy(docs []string, keys ...string) error {
	for _, key := range keys {
		for _, doc := range docs {
			a, err := h.Client(key).Do(context.Background(), http.MethodPost, "/v1/workflows", doc)
			if err != nil {
				return err
			}
			if a.Status != http.StatusCreated {
				return fmt.Errorf("deploy: %d %s\n%s", a.Status, a.Body, doc)
			}
		}
	}
	return nil
}

// Between lists the types of the events after the last node.started and before the node's end.
func Between(events []Event) string {
	var out []string
	for _, e := range events {
		switch e.Type {
		case "node.started":
			out = nil
		case "node.completed", "node.failed":
			return strings.Join(out, " ")
		default:
			out = append(out, e.Type)
		}
	}
	return strings.Join(out, " ")
}

// Seed returns a random source. The test's log shows the seed, and CHAOS_SEED repeats it.
func Seed(t *testing.T) *rand.Rand {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("CHAOS_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		require.NoError(t, err)
		s = n
	}
	t.Logf("CHAOS_SEED=%d", s)
	return rand.New(rand.NewPCG(s, 1)) //nolint:gosec // G404: reproducible on purpose
}
