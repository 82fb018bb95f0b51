package check

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/internal/runlog"
)

// deploy/nats/values.yaml gives NATS' chart a valid server configuration. It syncs every write,
// accepts the largest frame, has the host in an account with JetStream, and exports to readers what
// `waybill nats creds` imports.
func TestNATS_ValuesForItsChartAreAConfiguration(t *testing.T) {
	var values struct {
		Config struct {
			JetStream struct {
				Merge map[string]any `yaml:"merge"`
			} `yaml:"jetstream"`
			Merge map[string]any `yaml:"merge"`
		} `yaml:"config"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(source(t, "../nats/values.yaml")), &values))
	dir := t.TempDir()
	conf := values.Config.Merge
	conf["jetstream"] = values.Config.JetStream.Merge
	conf["jetstream"].(map[string]any)["store_dir"] = dir //nolint:forcetypeassert // made above
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(conf))
	raw := regexp.MustCompile(`"<< (.*?) >>"`).ReplaceAllString(text.String(), "$1")
	file := filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(file, []byte(raw), 0o600))
	t.Setenv("WAYBILL_NATS_PASSWORD", "secret")

	opts, err := server.ProcessConfigFile(file)
	require.NoError(t, err, raw)
	opts.Port = server.RANDOM_PORT
	s := natslinktest.Serve(t, opts)
	require.True(t, opts.SyncAlways)
	require.GreaterOrEqual(t, opts.MaxPayload, int32(runlog.MaxFrameBytes))
	require.EqualValues(t, 4*runlog.MaxFrameBytes, opts.MaxPending)
	require.Len(t, opts.Users, 1)
	require.Equal(t, "secret", opts.Users[0].Password)
	account, err := s.LookupAccount(natsperm.HostAccount)
	require.NoError(t, err)
	require.True(t, account.JetStreamEnabled())
	var written struct {
		Accounts map[string]struct {
			Exports []struct {
				Service, ResponseType, ResponseThreshold string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(text.String(), "response_", "response")), &written))
	exports := written.Accounts[natsperm.HostAccount].Exports
	require.Len(t, exports, len(natsperm.Exports()), "no more than these")
	for i, e := range natsperm.Exports() {
		within, err := time.ParseDuration(exports[i].ResponseThreshold)
		require.NoError(t, err)
		require.Equal(t, natsperm.Export{Subject: exports[i].Service, Streamed: exports[i].ResponseType == "stream", Within: within}, e)
	}
}
