"""What is shown of a running engine: everything here looks at a picture of it, and changes nothing."""
