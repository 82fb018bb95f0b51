package schema

// OnlyArrays reports that the schema says at its root that it is one of arrays.
func (s *Schema) OnlyArrays() bool { return s.arrays }
