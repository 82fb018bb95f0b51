package node

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// ChannelWrite is a write to a channel: the input of the channel's reducer. The run loop checks
// whether it is allowed.
type ChannelWrite struct {
	Channel string
	Value   json.RawMessage
}

// channelWrite writes to the channel in its config. The value is the port value, else the config's
// value, else the port input (OpenWOP host contract §5.6).
func channelWrite(in Input) (Output, *wire.NodeError) {
	c, err := readConfig[channelConfig](in.Config)
	if err != nil || c.Name == "" {
		return Output{}, Invalid("/config/channelName: want the name of a channel, a string")
	}
	for _, v := range []json.RawMessage{in.Ports["value"], c.Value, in.Ports["input"]} {
		if len(v) > 0 {
			return Output{Channels: []ChannelWrite{{c.Name, v}}}, nil
		}
	}
	return Output{}, Invalid("/config/value: want the value to write, here or on the port value or input")
}

func channelType() Type { return Type{ID: workflow.TypeChannelWrite, Class: Pure, Do: channelWrite} }
