package obs_test

import (
	"errors"
	"strings"
	"testing"

	"waybill.dev/waybill/internal/obs"
)

func TestPanic_ShowsRuntimeErrorsAndOtherwiseTheType(t *testing.T) {
	t.Parallel()
	caught := func(f func()) (text string) {
		defer func() { text = obs.Panic(recover()) }()
		f()
		return ""
	}
	var list []int
	if got := caught(func() { _ = list[len(list)] }); !strings.Contains(got, "index out of range") {
		t.Errorf("got %q", got)
	}
	for _, v := range []any{"sk-secret", errors.New("sk-secret"), struct{ Key string }{"sk-secret"}} {
		if got := caught(func() { panic(v) }); strings.Contains(got, "secret") || !strings.Contains(got, "type") {
			t.Errorf("got %q", got)
		}
	}
}
