package schema

// OnlyArrays reports whether the schema has type array at its root.
func (s *Schema) OnlyArrays() bool { return s.arrays }
