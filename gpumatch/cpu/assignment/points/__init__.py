"""Assignment of points: few pairs at a time, and prices that prove that no other pair matters."""
