package node

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// TypeDelay is the node type that waits.
const TypeDelay = "core.delay"

// OldMaxDelay is the longest wait of runs created by earlier versions.
const OldMaxDelay = 7 * 24 * time.Hour

// delay reads the wait from the run input delaySeconds, the port delayMs, or the config members
// delayMs, ms or durationMs, in that order.
func delay(in Input) (int64, *wire.NodeError) {
	if v, ok := in.RunInputs["delaySeconds"]; ok {
		return in.millis("/inputs/delaySeconds", v, 1000)
	}
	if v, ok := in.Ports["delayMs"]; ok {
		return in.millis("/inputs/delayMs", v, 1)
	}
	if name, v := delayMember(in.Config); v != nil {
		return in.millis("/config/"+name, v, 1)
	}
	return 0, nil
}

// delayMember returns the config member with the wait; nil if there is none.
func delayMember(config json.RawMessage) (name string, value json.RawMessage) {
	cfg, _ := readConfig[delayConfig](config)
	switch {
	case cfg.DelayMs != nil:
		return "delayMs", cfg.DelayMs
	case cfg.Ms != nil:
		return "ms", cfg.Ms
	case cfg.DurationMs != nil:
		return "durationMs", cfg.DurationMs
	}
	return "", nil
}

// millis reads a wait given in units of unit milliseconds.
func (in Input) millis(path string, v json.RawMessage, unit float64) (int64, *wire.NodeError) {
	most := cmp.Or(in.MaxDelay, OldMaxDelay).Milliseconds()
	var f float64
	if err := json.Unmarshal(v, &f); err != nil || f < 0 || f*unit > float64(most) {
		return 0, Invalid("%s: want a number from 0 to %d (%s)", path, int64(float64(most)/unit), time.Duration(most)*time.Millisecond)
	}
	return int64(f * unit), nil
}

// lintDelay finds an impossible wait.
func lintDelay(config json.RawMessage) []workflow.Problem {
	name, v := delayMember(config)
	if v == nil {
		return nil
	}
	return lintMillis("/"+name, v)
}

func lintMillis(path string, v json.RawMessage) []workflow.Problem {
	var f float64
	if err := json.Unmarshal(v, &f); err == nil && f >= 0 && f <= float64(workflow.MaxWait.Milliseconds()) {
		return nil
	}
	return []workflow.Problem{{
		Path: path,
		Rule: RuleLimit,
		Message: fmt.Sprintf("is %s; want a number of milliseconds from 0 to %d (%d days)",
			abbreviate(v), workflow.MaxWait.Milliseconds(), int(workflow.MaxWait.Hours())/24),
	}}
}

// abbreviate renders a value for messages.
func abbreviate(v json.RawMessage) string {
	const most = 40
	if len(v) > most {
		return "a value of " + strconv.Itoa(len(v)) + " bytes"
	}
	return string(v)
}
