package rpc

import (
	"fmt"
	"slices"

	"github.com/fullstorydev/grpchan/inprocgrpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// largeMessage is the size from which copies of messages within the process share their bytes.
const largeMessage = 64 << 10

// cloner copies messages within the process. Copies of large ones share the contents of their fields
// of bytes, which neither side changes: a request of 1 MB would otherwise be in memory once for each
// service that it passes.
type cloner struct{ inprocgrpc.ProtoCloner }

// Clone implements inprocgrpc.Cloner.
func (c cloner) Clone(in any) (any, error) {
	m, ok := in.(proto.Message)
	if !ok || proto.Size(m) < largeMessage {
		return c.ProtoCloner.Clone(in)
	}
	out := m.ProtoReflect().New()
	share(out, m.ProtoReflect())
	return out.Interface(), nil
}

// Copy implements inprocgrpc.Cloner.
func (c cloner) Copy(out, in any) error {
	from, ok := in.(proto.Message)
	to, okTo := out.(proto.Message)
	if !ok || !okTo || proto.Size(from) < largeMessage {
		return c.ProtoCloner.Copy(out, in)
	}
	if a, b := to.ProtoReflect().Descriptor(), from.ProtoReflect().Descriptor(); a != b {
		return fmt.Errorf("copy message: %s is not %s", a.FullName(), b.FullName())
	}
	proto.Reset(to)
	share(to.ProtoReflect(), from.ProtoReflect())
	return nil
}

// share copies a message without the contents of its bytes.
func share(to, from protoreflect.Message) {
	from.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			into := to.Mutable(f).Map()
			v.Map().Range(func(k protoreflect.MapKey, e protoreflect.Value) bool {
				into.Set(k, shared(f.MapValue(), e, into.NewValue))
				return true
			})
		case f.IsList():
			into, all := to.Mutable(f).List(), v.List()
			for i := range all.Len() {
				into.Append(shared(f, all.Get(i), into.NewElement))
			}
		default:
			to.Set(f, shared(f, v, func() protoreflect.Value { return to.NewField(f) }))
		}
		return true
	})
	to.SetUnknown(from.GetUnknown())
}

// shared returns a value of a field for another message.
func shared(f protoreflect.FieldDescriptor, v protoreflect.Value, empty func() protoreflect.Value) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		out := empty()
		share(out.Message(), v.Message())
		return out
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(slices.Clip(v.Bytes())) // nothing is appended in place
	default:
		return v
	}
}
