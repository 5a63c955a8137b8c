import { heading } from "../shared/states.js";
export const caption = { name: "caption", title: "caption", available: () => false, show(place) { place.append(heading("caption", "")); } };
