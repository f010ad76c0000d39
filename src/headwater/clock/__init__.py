"""How far time has come in the streams, from what is declared and seen of them."""
