"""What a stream is: time, elements, deltas, schemas, histories."""
